/** A question in SQL: explained for free while it is written, then asked. */
import {html, nothing} from '../vendor/lit-html.js';
import {half_of, shown_error, shown_value, up} from '../numbers.js';
import {was_refused} from '../words.js';

/** Whether just this statement was explained, without a mistake. */
export const may_state = ({explained, statement, epsilon, delta, asking}) => Boolean(explained?.explanation) && explained.of === statement.trim() && explained.at === epsilon.trim()
  && explained.delta === delta.trim() && !asking;

export const statement = (state, on) => {
  const {sql} = state;
  return html`
  <section class="question" aria-labelledby="sql-head">
    <h2 id="sql-head">Question</h2>
    ${modes(state, on)}
    <form @submit=${on.ask_sql} @input=${on.edit_sql} novalidate>
      <label for="statement">Statement</label>
      <textarea id="statement" name="statement" class="code" rows="7" spellcheck="false" autocapitalize="none" autocomplete="off" aria-describedby="explained"
        placeholder="SELECT city, AVG(income) FROM people WHERE age &gt; 17 GROUP BY city" .value=${sql.statement}></textarea>
      <p class="help">Tables: ${state.datasets.flatMap((d) => d.tables.map((t) => (d.tables.length === 1 && t.name === d.name ? d.name : `${d.name}.${t.name}`))).join(', ')}. Bounds of a column: CLAMP(x, 0, 100).</p>
      <label for="sql-epsilon">ε, the privacy to spend</label>
      <input id="sql-epsilon" name="epsilon" inputmode="decimal" .value=${sql.epsilon}>
      ${state.datasets.some((one) => one.keys_delta) ? html`<label for="sql-delta">δ, to find groups that nobody listed <span class="help">(optional)</span></label>
        <input id="sql-delta" name="delta" inputmode="decimal" autocomplete="off" .value=${sql.delta}>` : nothing}
      <div id="explained" class="quote" aria-live="polite">
        ${sql.explained?.mistake ? html`<p class="warn">${sql.explained.mistake}</p>` : nothing}
        ${sql.explained?.explanation ? html`<pre tabindex="0" aria-label="Explanation"><code>${sql.explained.explanation}</code></pre>` : nothing}
        ${sql.explained ? nothing : html`<p class="help">What it would cost and how exact it would be is said here, for free.</p>`}
      </div>
      <button class="main" type="submit" aria-disabled=${!may_state(sql)}>${sql.asking ? 'Asking …' : `Ask, at ε ${sql.epsilon}`}</button>
      <div role="alert">${sql.refused ? html`<p class="warn">${was_refused(sql.refused)}</p>` : nothing}</div>
    </form>
  </section>`;
};

/** By form, or in SQL. */
export const modes = (state, on) => html`<div role="group" aria-label="How to ask" class="tabs">
  <button type="button" aria-pressed=${state.mode === 'form'} @click=${() => on.mode('form')}>By form</button>
  <button type="button" aria-pressed=${state.mode === 'sql'} @click=${() => on.mode('sql')}>In SQL</button></div>`;

/** The answers of statements. */
export const rows = (state) => state.statements.map(({request_id: id, statement: text, told}) => html`
  <article class="answer" aria-labelledby=${`s${id}`}>
    <h3 id=${`s${id}`} class="code">${text}</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="The rows of ${text}"><table>
      <thead><tr>${told.columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${told.rows.map((row) => html`<tr>${row.map((cell) => html`<td class=${cell !== null && typeof cell === 'object' ? 'number' : ''}>${shown(cell)}</td>`)}</tr>`)}</tbody>
    </table></div>
    <p class="help">± is half of a 95 % interval of the noise that was added. Charged ${Object.entries(told.charged).map(([name, amount]) => `${up(amount)} of ${name}`).join(' and ')}.</p>
  </article>`);

function shown(cell) {
  if (cell === null || typeof cell !== 'object') return cell === null ? 'null' : String(cell);
  const half = half_of(cell);
  return half === null ? shown_value(cell) : `${shown_value(cell)} ± ${shown_error(half)}`;
}
