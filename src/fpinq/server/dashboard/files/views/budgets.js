/** The data sets: what is public of them, and what is left. */
import {html, nothing} from '../vendor/lit-html.js';
import {budget} from '../charts.js';
import {down, small, up} from '../numbers.js';
import {protects} from '../words.js';

/** What a quote takes of a data set; "0" if nothing. */
const taken = (quote, name) => quote?.prices?.find((one) => one.dataset === name)?.price ?? '0';

export const budgets = (state, more = () => nothing) => html`
  <section class="budgets" aria-labelledby="budgets-head">
    <h2 id="budgets-head">Data sets and what is left</h2>
    ${state.datasets.map((dataset) => {
    const mine = state.me.datasets[dataset.name] ?? dataset;
    const [all, left] = [mine.budget, mine.remaining];
    const rho = mine.notion === 'rho' ? ' ρ' : '';
    const takes = taken(state.quote, dataset.name);
    return html`<article class="dataset" aria-label=${dataset.name}>
      <p class="left"><strong>${down(left)}</strong> of ${down(all)}${rho} left</p>
      <h3>${dataset.name}${dataset.frozen ? html` <span class="frozen">frozen</span>` : nothing}</h3>
      <p class="help">${dataset.description ? html`${dataset.description}; ` : nothing}${protects(dataset)}${dataset.block_of ? html`; a block of ${dataset.block_of}` : nothing}</p>
      ${budget(all, left, takes, `${dataset.name}: ${down(left)} of ${down(all)}${rho} left${takes === '0' ? '' : `; this question takes ${up(takes)}`}`)}
      ${mine.cap ? html`<p class="help">Your share is ${down(mine.cap)}, of which ${down(mine.cap_remaining)} is left.</p>` : nothing}
      ${mine.delta ? html`<p class="help">δ for groups that nobody listed: ${small(mine.delta.left, false)} of ${small(mine.delta.cap ?? mine.delta.keys_delta, false)} left${mine.delta.cap ? ' for you' : ''}.</p>` : nothing}
      ${more(dataset)}
    </article>`;
  })}
  </section>`;
