/** Answers: a chart with intervals, the table, how it was made, and the same elsewhere. */
import {html, nothing} from '../vendor/lit-html.js';
import {bins, derivation, groups, single, terms} from '../charts.js';
import {half_of, shown_error, shown_value, up} from '../numbers.js';
import * as words from '../words.js';
import {elsewhere} from './question.js';
import {rows} from './statement.js';

const title = (answer) => answer.words[0].toUpperCase() + answer.words.slice(1);
const measured = (answer) => (answer.name === 'n' ? 'rows' : answer.name.replaceAll('_', ' '));

export const answers = (state, on) => html`
  <section class="answers" aria-labelledby="answers-head">
    <h2 id="answers-head">Answers</h2>
    <div aria-live="polite">${state.questions.length || state.statements.length ? nothing : html`<p class="help">What you ask is listed here, and stays: looking at it again costs nothing.</p>`}</div>
    ${rows(state)}
    ${state.questions.map((kept) => one(kept, state, on))}
    ${state.more ? html`<p><button type="button" class="link" @click=${on.older}>Older questions</button></p>` : nothing}
  </section>`;

function one(kept, state, on) {
  const {answer} = kept;
  const id = `q${kept.number}`;
  if (!answer) {
    return html`<article class="answer" aria-labelledby=${id}><h3 id=${id}>${kept.question.kind} in ${kept.question.table}</h3>
      <p>Under way, or cut short. <button type="button" class="link" @click=${() => on.again(kept)}>Send it again</button>: it is charged once.</p></article>`;
  }
  const what = measured(answer);
  const several = answer.key_columns.length > 0;
  const binned = answer.key_columns.length === 2 && answer.key_columns[0] === 'bin_lower';
  const fitted = kept.question.kind === 'regression';
  const points = kept.question.kind === 'cdf' && !kept.question.by;
  const dataset = state.datasets.find((d) => d.name === answer.prices[0]?.dataset);
  const intervals = answer.answers.some((each) => each.low !== null);
  return html`<article class="answer" aria-labelledby=${id}>
    <h3 id=${id}>${title(answer)}</h3>
    <p class="help when"><time datetime=${kept.asked_at}>${kept.asked_at.slice(0, 16).replace('T', ' ')}</time> UTC · ${words.asked_at(answer)}</p>
    ${!several ? single(answer.answers[0], what)
    : fitted ? html`${equations(kept)}${answer.answers.length <= 60 ? terms(answer.answers, state.width, title(answer)) : nothing}`
    : binned || points ? bins(answer.answers, what, state.width, title(answer), points)
      : answer.answers.length <= 60 ? groups(answer.answers, what, state.width, title(answer)) : nothing}
    <p class="help">${fitted ? `${words.TERMS} ` : nothing}${intervals ? (several ? words.INTERVALS : words.INTERVAL) : answer.answers[0]?.ranks ? words.RANKS : nothing}</p>
    ${notes(answer).map(([note, keys]) => html`<p class="note">${keys.length && keys.length < answer.answers.length ? `${keys.join('; ')}: ` : ''}${note}</p>`)}
    ${several ? html`<details ?open=${answer.answers.length <= 12 && !binned}><summary>The ${answer.answers.length > 1 ? answer.answers.length : ''} numbers</summary>${table(answer, what)}</details>` : nothing}
    <p class="help charged">${words.charged(answer)} ${answer.truncation.map((t) => words.truncated(t))}</p>
    <details><summary>How it was made</summary>${derivation(answer, words.unit_of(dataset), state.width)}</details>
    ${elsewhere(kept.question, state, on, id)}
    <p class="actions"><button type="button" class="link" @click=${() => on.csv(kept)}>CSV file</button></p>
  </article>`;
}

/** What is to be said of single answers, each once, with the keys it is said of. */
function notes(answer) {
  const found = new Map();
  for (const {note, key} of answer.answers) if (note) found.set(note, [...(found.get(note) ?? []), key.map(String).join(', ')].filter(Boolean));
  return [...found];
}

/** What a regression says, as an equation for each group: income ≈ 17 540 + 257 × age. */
function equations({question, answer}) {
  const found = new Map();
  for (const each of answer.answers) {
    const group = each.key.slice(0, -1).map(String).join(', ');
    const [term, size] = [each.key.at(-1), shown_value(each).replace('−', '')];
    const minus = shown_value(each).startsWith('−');
    const so_far = found.get(group);
    const sign = so_far === undefined ? (minus ? '−' : '') : minus ? ' − ' : ' + ';
    found.set(group, `${so_far ?? ''}${sign}${size}${so_far === undefined ? '' : ` × ${term}`}`);
  }
  return [...found].map(([group, sum]) => html`<p class="equation">${group ? `${group}: ` : ''}${question.of[0]} ≈ ${sum}</p>`);
}

const table = (answer, what) => html`<div class="scroll" tabindex="0" role="region" aria-label="The numbers: ${title(answer)}"><table>
  <thead><tr>${answer.key_columns.map((name) => html`<th scope="col">${name}</th>`)}<th scope="col" class="number">${what}</th><th scope="col" class="number">± (95 %)</th></tr></thead>
  <tbody>${answer.answers.map((each) => {
  const half = half_of(each);
  return html`<tr>${each.key.map((key) => html`<td>${key === null ? 'null' : String(key)}</td>`)}<td class="number">${shown_value(each)}</td>
    <td class="number">${half === null ? (each.ranks === null ? '–' : `${each.ranks} ranks`) : shown_error(half)}</td></tr>`;
})}</tbody></table></div>`;
