/** A question by form: what it costs and how exact it will be, before it is asked. */
import {html, nothing} from '../vendor/lit-html.js';
import {column, PROGRAMS} from '../programs.js';
import {down, up} from '../numbers.js';
import * as words from '../words.js';
import {modes} from './statement.js';

export const NUMERIC = ['int64', 'float64'];
const OF_NUMBERS = ['average', 'sum', 'median', 'quantile', 'standard_deviation', 'variance', 'minimum', 'maximum', 'histogram', 'cdf'];
const BINNED = ['histogram', 'cdf'];
export const FORMULA = '\u0000formula';

/** The steps of the slider: 1, 1.5, 2, 3, 5, 7 and so on. */
export const EPSILONS = [-3, -2, -1, 0].flatMap((k) => [1, 1.5, 2, 3, 5, 7].map((m) => String(Number((m * 10 ** k).toPrecision(2))))).concat('10');

export const nearest = (text) => {
  const wanted = Math.log(Number(text) || 0.1);
  let best = 0;
  EPSILONS.forEach((one, i) => { if (Math.abs(Math.log(one) - wanted) < Math.abs(Math.log(EPSILONS[best]) - wanted)) best = i; });
  return best;
};

/** All tables, with what they are called in a question. */
export const tables_of = (datasets) => datasets.flatMap((dataset) => dataset.tables.map((table) => ({
  dataset, table, name: dataset.tables.length === 1 && table.name === dataset.name ? dataset.name : `${dataset.name}.${table.name}`,
})));

/** The columns that a kind can be asked of. */
export const columns_for = (kind, table) => table.schema.filter(([, type]) => !OF_NUMBERS.includes(kind) || NUMERIC.includes(type)).map(([name]) => name);

/** The body of the question that the form is; null where something is still to be said. */
export function question_of(form, datasets) {
  const found = tables_of(datasets).find((one) => one.name === form.table);
  if (!found) return null;
  const body = {table: form.table, kind: form.kind, epsilon: form.epsilon.trim()};
  if (form.where.trim()) body.where = form.where.trim();
  if (form.kind !== 'count') {
    const of = form.of === FORMULA || form.kind === 'proportion' ? form.formula.trim() : form.of && column(form.of);
    if (!of) return null;
    body.of = of;
  }
  if (OF_NUMBERS.includes(form.kind) && (form.least.trim() || form.largest.trim())) body.bounds = [form.least.trim(), form.largest.trim()];
  if (form.kind === 'quantile') body.fraction = form.fraction.trim();
  if (['median', 'quantile'].includes(form.kind) && form.interval) body.interval = '0.95';
  if (BINNED.includes(form.kind)) body.bins = Number(form.bins) || 20;
  if (form.by) {
    body.by = column(form.by);
    const type = found.table.schema.find(([name]) => name === form.by)?.[1];
    const keys = form.keys.split(',').map((key) => key.trim()).filter(Boolean);
    if (keys.length) body.keys = keys.map((key) => (NUMERIC.includes(type) ? Number(key) : type === 'bool' ? key === 'true' : key));
  }
  return body;
}

/** Whether the price of just this question is known, and can be paid. */
export const may_ask = (state, body) => Boolean(body) && state.quoted === JSON.stringify(body) && !state.quote.mistake && !state.quote.refused && !state.asking;

const option = (value, text, selected) => html`<option value=${value} ?selected=${value === selected}>${text}</option>`;

/** What is wrong with a field, if the first mistake is there. */
const wrong = (state, ...fields) => {
  const mistake = state.quote?.mistake;
  return mistake && fields.includes(mistake.field) ? mistake.message : '';
};

export function question(state, on) {
  const {form, datasets} = state;
  if (!datasets.length) return html`<section aria-labelledby="question-head"><h2 id="question-head">Question</h2><p>There are no data sets yet: their owner adds them with fpinq dataset add.</p></section>`;
  const {dataset, table} = tables_of(datasets).find((one) => one.name === form.table);
  const numbers = OF_NUMBERS.includes(form.kind);
  const known = table.columns[form.of] ?? {};
  const bounds = known.bounds ?? null;
  const bound = (b) => (b === null || b === undefined ? '' : typeof b === 'object' ? b.float : String(b));
  const body = question_of(form, datasets);
  return html`
  <section class="question" aria-labelledby="question-head">
    <h2 id="question-head">Question</h2>
    ${modes(state, on)}
    <form @submit=${on.ask} @input=${on.edit} @change=${on.edit} novalidate>
      <label for="table">Table</label>
      <select id="table" name="table">${tables_of(datasets).map((one) => option(one.name, one.name, form.table))}</select>
      ${table.description ? html`<p class="help">${table.description}</p>` : nothing}

      <label for="where">Only rows where <span class="help">(optional)</span></label>
      <input id="where" name="where" class="code" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder="age &gt; 17 and city = 'Bergen'" .value=${form.where}
        aria-invalid=${wrong(state, 'where') ? 'true' : 'false'} aria-describedby="where-wrong columns">
      <p id="where-wrong" class="warn" aria-live="polite">${wrong(state, 'where')}</p>
      <p id="columns" class="help">Columns: ${table.schema.map(([name, type], i) => html`${i ? ', ' : ''}<code title=${table.descriptions[name] ?? ''}>${column(name)}</code> ${type}`)}</p>

      <div class="pair">
        <div><label for="kind">Ask for</label>
          <select id="kind" name="kind">${Object.entries(words.KINDS).map(([kind, text]) => option(kind, text, form.kind))}</select></div>
        ${form.kind === 'count' || form.kind === 'proportion' ? nothing : html`<div><label for="of">of</label>
          <select id="of" name="of">${columns_for(form.kind, table).map((name) => option(name, name, form.of))}${option(FORMULA, 'a formula …', form.of)}</select></div>`}
        ${form.kind === 'quantile' ? html`<div><label for="fraction">at fraction</label><input id="fraction" name="fraction" inputmode="decimal" .value=${form.fraction}></div>` : nothing}
      </div>
      ${form.kind === 'proportion' || (form.kind !== 'count' && form.of === FORMULA) ? html`
        <label for="formula">${form.kind === 'proportion' ? 'of rows where' : 'formula'}</label>
        <input id="formula" name="formula" class="code" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder=${form.kind === 'proportion' ? 'age > 64' : 'income / 12'} .value=${form.formula}>` : nothing}
      <p class="warn" aria-live="polite">${wrong(state, 'of', 'fraction', 'interval', 'bins', 'bounds')}</p>

      ${numbers ? html`<fieldset><legend>Bounds <span class="help">values beyond are moved to them</span></legend>
        <div class="pair">
          <div><label for="least" class="plain">least</label><input id="least" name="least" inputmode="decimal" placeholder=${bound(bounds?.[0])} .value=${form.least}></div>
          <div><label for="largest" class="plain">largest</label><input id="largest" name="largest" inputmode="decimal" placeholder=${bound(bounds?.[1])} .value=${form.largest}></div>
        </div>
        <p class="help">${bounds ? 'Left empty, they are the owner’s.' : 'From what you know without the data.'}</p></fieldset>` : nothing}
      ${BINNED.includes(form.kind) ? html`<label for="bins">Bins</label><input id="bins" name="bins" inputmode="numeric" .value=${form.bins}>` : nothing}
      ${['median', 'quantile'].includes(form.kind) ? html`<p><label class="check"><input type="checkbox" name="interval" .checked=${form.interval}> also where it is, at 95 % (takes two thirds of ε)</label></p>` : nothing}

      <label for="by">For each <span class="help">(optional)</span></label>
      <select id="by" name="by">${option('', '–', form.by)}${table.schema.map(([name, type]) => {
    const keys = table.columns[name]?.keys;
    return option(name, keys ? `${name}: ${keys.length} groups` : type === 'bool' ? `${name}: 2 groups` : name, form.by);
  })}</select>
      ${form.by && !table.columns[form.by]?.keys ? html`<label for="keys">Groups <span class="help">separated by commas</span></label>
        <input id="keys" name="keys" autocomplete="off" .value=${form.keys}>` : nothing}
      <p class="warn" aria-live="polite">${wrong(state, 'by', 'keys')}</p>

      <label for="epsilon">ε, the privacy to spend</label>
      <div class="slider">
        <input type="range" name="slider" min="0" max=${EPSILONS.length - 1} step="1" aria-label="ε by slider" aria-valuetext=${`ε ${form.epsilon}`} .value=${String(nearest(form.epsilon))}>
        <input id="epsilon" name="epsilon" inputmode="decimal" .value=${form.epsilon} aria-describedby="quote" aria-invalid=${wrong(state, 'epsilon') ? 'true' : 'false'}>
      </div>
      <p class="warn" aria-live="polite">${wrong(state, 'epsilon')}</p>
      ${quoted(state, dataset)}
      <button class="main" type="submit" aria-disabled=${!may_ask(state, body)}>
        ${state.asking ? 'Asking …' : state.quote?.prices?.length ? `Ask, spending ${up(state.quote.prices[0].price)}` : 'Ask'}</button>
      <div role="alert">${state.refused ? html`<p class="warn">${words.was_refused(state.refused)}</p>` : nothing}</div>
    </form>
    ${body ? elsewhere(body, state, on, 'form') : nothing}
  </section>`;
}

/** What a quote says. */
function quoted(state, dataset) {
  const {quote} = state;
  if (!quote) return html`<div id="quote" class="quote"><p class="help">${words.EPSILON}</p></div>`;
  if (quote.mistake) {
    const elsewhere_said = ['where', 'of', 'fraction', 'interval', 'bins', 'bounds', 'by', 'keys', 'epsilon'].includes(quote.mistake.field);
    return html`<div id="quote" class="quote" aria-live="polite">${elsewhere_said ? nothing : html`<p class="warn">${quote.mistake.message}</p>`}</div>`;
  }
  const unit = words.unit_of(dataset);
  const [first] = quote.prices;
  return html`<div id="quote" class="quote" aria-live="polite">
    <p>${quote.refused ? html`<strong class="warn">${words.would_be_refused(quote.refused)}</strong>` : html`${words.price(quote)} ${first ? html`It would have <strong class="after">${down(first.left_after)}</strong> left.` : nothing}`}
      ${words.factor(quote, unit)} ${words.parts(quote)}</p>
    ${quote.truncation.map((one) => html`<p>${words.truncated(one)}</p>`)}
    <p class="exactness">${words.exactness(quote)}</p>
    <p>${words.odds(quote.likelihood_ratio, unit)}</p>
  </div>`;
}

/** The same question as a program. */
export const elsewhere = (body, state, on, where) => html`<details class="elsewhere">
  <summary>The same in Python, SQL or curl</summary>
  <div role="group" aria-label="Language" class="tabs">${Object.entries(PROGRAMS).map(([kind, [name]]) => html`
    <button type="button" aria-pressed=${state.form_of === kind} @click=${() => on.form_of(kind)}>${name}</button>`)}</div>
  <pre tabindex="0" aria-label="Program"><code>${PROGRAMS[state.form_of][1](body)}</code></pre>
  <button type="button" class="link" @click=${() => on.copy(PROGRAMS[state.form_of][1](body), where)}>Copy</button>
  <span class="help" role="status">${state.copied === where ? 'Copied.' : ''}</span>
</details>`;
