/** For owners and auditors: budgets as they burn down, the trace as it happens, the head and a replay. */
import {html, nothing} from '../vendor/lit-html.js';
import {budget, growth} from '../charts.js';
import {down, Fraction, small, up} from '../numbers.js';
import * as words from '../words.js';
import {budgets} from './budgets.js';

const KINDS = {'': 'everything', action: 'actions', answer: 'answers', root: 'data sets', freeze: 'freezes', unfreeze: 'thaws'};

export const watching = (state, on) => html`
  <div class="watching">
    ${budgets(state, (dataset) => spent(dataset, state, on))}
    ${ledger(state, on)}
    ${trace(state, on)}
  </div>`;

function spent(dataset, state, on) {
  const found = state.spending?.find((one) => one.name === dataset.name);
  return html`
    ${state.me.role === 'owner' ? html`<p><button type="button" class="small" @click=${() => on.freeze(dataset)}>${dataset.frozen ? 'Thaw' : 'Freeze'} ${dataset.name}</button>
      <span class="help">${dataset.frozen ? 'No query of it is answered.' : 'From then on no query of it is answered.'}</span></p>` : nothing}
    ${found && (found.analysts.length || found.over_time.length) ? html`<details open><summary>Who has spent what</summary>
      ${growth(found, state.width)}
      <div class="scroll" tabindex="0" role="region" aria-label=${`Who has spent what of ${dataset.name}`}><table><thead><tr><th scope="col">analyst</th><th scope="col" class="number">spent</th><th scope="col" class="number">cap</th><th scope="col">of the ${'budget or cap'}</th>${found.keys_delta ? html`<th scope="col" class="number">δ for groups</th>` : nothing}</tr></thead>
      <tbody>${found.analysts.map((one) => {
    const of = one.cap ?? found.budget;
    const left = Fraction.of(of).minus(Fraction.of(one.spent));
    const rest = left.n < 0n ? '0' : `${left.n}/${left.d}`;
    return html`<tr><td>${one.name || 'the owner’s program'}</td><td class="number">${up(one.spent)}</td><td class="number">${one.cap === null ? '–' : down(one.cap)}</td>
        <td class="barred">${budget(of, rest, '0', `${one.name} has spent ${up(one.spent)} of ${down(of)}`)}</td>${found.keys_delta ? html`<td class="number">${small(one.spent_delta)} of ${small(one.keys_cap ?? found.keys_delta, false)}</td>` : nothing}</tr>`;
  })}</tbody></table></div></details>` : nothing}`;
}

const ledger = (state, on) => html`<section aria-labelledby="ledger-head"><h2 id="ledger-head">Ledger</h2>
  <p>Head ${state.trace?.head ? html`<strong>${state.trace.head.seq}</strong> <code class="hash">${state.trace.head.hash}</code>` : '…'}</p>
  <p class="help">Write the head down elsewhere: whoever has it can tell this ledger from an older copy.</p>
  <p><button type="button" class="small" aria-disabled=${state.verified === 'under way'} @click=${on.verify}>Replay all entries</button></p>
  <div aria-live="polite">${replayed(state.verified)}</div></section>`;

function replayed(found) {
  if (!found) return nothing;
  if (found === 'under way') return html`<p class="help">Every entry is replayed through the kernel …</p>`;
  if (!found.ok) return html`<p class="warn">Entry ${found.entry} does not follow: ${found.what}. Nothing after it can be trusted: keep the file, and see docs/operating/ledger.md.</p>`;
  return html`<p class="verified">✓ ${found.entries} entries of ${found.sessions} ${found.sessions === 1 ? 'session' : 'sessions'} follow from each other and the kernel’s rules.
    ${Object.entries(found.datasets).map(([name, one]) => html`${up(one.spent)} of ${down(one.budget)} is spent of ${name}. `)}
    ${found.unanswered ? html`${found.unanswered} charged without a recorded answer: cut short, or being measured.` : nothing}</p>`;
}

const trace = (state, on) => html`
  <section class="trace" aria-labelledby="trace-head">
    <h2 id="trace-head">Trace</h2>
    <form class="sieve" @input=${on.sieve} @submit=${(event) => event.preventDefault()}>
      <div><label for="s-dataset">Data set</label><select id="s-dataset" name="dataset"><option value="">all</option>${state.datasets.map((d) => html`<option value=${d.name} ?selected=${state.sieve.dataset === d.name}>${d.name}</option>`)}</select></div>
      <div><label for="s-kind">What</label><select id="s-kind" name="kind">${Object.entries(KINDS).map(([value, text]) => html`<option value=${value} ?selected=${state.sieve.kind === value}>${text}</option>`)}</select></div>
      <div><label for="s-analyst">Analyst</label><input id="s-analyst" name="analyst" autocomplete="off" .value=${state.sieve.analyst}></div>
      <div><label for="s-word">With the words</label><input id="s-word" name="word" autocomplete="off" .value=${state.sieve.word}></div>
    </form>
    <p class="help"><button type="button" class="link" @click=${on.pause}>${state.paused ? 'Go on' : 'Pause'}</button> ${words.CHAIN}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Entries of the trace"><table class="entries">
      <thead><tr><th scope="col" class="number">No.</th><th scope="col">Time (UTC)</th><th scope="col">What</th><th scope="col" class="number">Charged</th><th scope="col">Hash</th></tr></thead>
      <tbody>${(state.trace?.entries ?? []).map((entry) => {
  const charged = Object.entries(entry.charged ?? {});
  return html`<tr class=${charged.length ? 'charging' : ''}><td class="number">${entry.seq}</td><td><time datetime=${entry.at}>${entry.at.slice(5, 19).replace('T', ' ')}</time></td>
        <td class="text">${entry.text}</td><td class="number">${charged.map(([name, amount]) => html`<span class="charge">${up(amount)} ${name}</span> `)}</td><td><code>${entry.hash.slice(0, 8)}</code></td></tr>`;
})}</tbody></table></div>
    ${state.trace && !state.trace.entries.length ? html`<p class="help">Nothing like this among the entries that were looked at.</p>` : nothing}
    ${state.trace && state.trace.looked_at > 0 ? html`<p><button type="button" class="link" @click=${on.earlier}>Earlier entries</button></p>` : nothing}
  </section>`;
