/** A question by form: what it costs and how exact it will be, before it is asked. */
import {html, nothing} from '../vendor/lit-html.js';
import {BINNED, CHOSEN, columns_for, FORMULA, may_ask, nearest, OF_NUMBERS, OF_SEVERAL, OF_TWO, others_of, question_of, STEPS, tables_of, ways} from '../form.js';
import {column, PROGRAMS} from '../programs.js';
import {down, up} from '../numbers.js';
import * as words from '../words.js';
import {modes} from './statement.js';

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
  const body = question_of(form, datasets);
  const letter = words.LETTERS[form.at];
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
        ${OF_TWO.includes(form.kind) ? html`<div><label for="other">and</label>
          <select id="other" name="other">${columns_for(form.kind, table).filter((name) => name !== form.of).map((name) => option(name, name, form.other))}</select></div>` : nothing}
        ${form.kind === 'top' ? html`<div><label for="first">how many</label><input id="first" name="first" inputmode="numeric" .value=${form.first}></div>` : nothing}
        ${form.kind === 'quantile' ? html`<div><label for="fraction">at fraction</label><input id="fraction" name="fraction" inputmode="decimal" .value=${form.fraction}></div>` : nothing}
      </div>
      ${form.kind === 'proportion' || (form.kind !== 'count' && form.of === FORMULA) ? html`
        <label for="formula">${form.kind === 'proportion' ? 'of rows where' : 'formula'}</label>
        <input id="formula" name="formula" class="code" spellcheck="false" autocomplete="off" autocapitalize="none" placeholder=${form.kind === 'proportion' ? 'age > 64' : 'income / 12'} .value=${form.formula}>` : nothing}
      ${form.kind === 'regression' ? predictors(form, table) : nothing}
      ${CHOSEN.includes(form.kind) && !has_keys(table, form.of) ? html`<label for="candidates">What it may be <span class="help">separated by commas</span></label>
        <input id="candidates" name="candidates" autocomplete="off" .value=${form.candidates}>
        <p class="help">From what you know without the data: other values are left out.</p>` : nothing}
      <p class="warn" aria-live="polite">${wrong(state, 'of', 'fraction', 'interval', 'bins', 'bounds', 'candidates', 'first')}</p>

      ${OF_NUMBERS.includes(form.kind) ? bounds(form, table) : nothing}
      ${BINNED.includes(form.kind) ? html`<label for="bins">Bins</label><input id="bins" name="bins" inputmode="numeric" .value=${form.bins}>` : nothing}
      ${['median', 'quantile'].includes(form.kind) ? html`<p><label class="check"><input type="checkbox" name="interval" .checked=${form.interval}> also where it is, at 95 % (takes two thirds of ε)</label></p>` : nothing}

      <label for="by">For each <span class="help">(optional)</span></label>
      <select id="by" name="by">${option('', '–', form.by)}${table.schema.map(([name, type]) => {
    const keys = table.columns[name]?.keys;
    return option(name, keys ? `${name}: ${keys.length} groups` : type === 'bool' ? `${name}: 2 groups` : name, form.by);
  })}</select>
      ${form.by && !has_keys(table, form.by) ? groups(form, dataset, table) : nothing}
      <p class="warn" aria-live="polite">${wrong(state, 'by', 'keys', 'discover')}</p>

      <div class="amount"><label for="epsilon">${letter}, the privacy to spend</label>
        ${state.me.datasets[dataset.name]?.notion === 'rho' ? html`<select name="at" aria-label="Asked at">${option('rho', 'ρ', form.at)}${option('epsilon', 'ε', form.at)}</select>` : nothing}</div>
      <div class="slider">
        <input type="range" name="slider" min="0" max=${STEPS[form.at].length - 1} step="1" aria-label="${letter} by slider" aria-valuetext=${`${letter} ${form.amount}`} .value=${String(nearest(form.amount, form.at))}>
        <input id="epsilon" name="amount" inputmode="decimal" .value=${form.amount} aria-describedby="quote" aria-invalid=${wrong(state, 'epsilon', 'rho') ? 'true' : 'false'}>
      </div>
      <p class="warn" aria-live="polite">${wrong(state, 'epsilon', 'rho')}</p>
      ${quoted(state, dataset)}
      <button class="main" type="submit" aria-disabled=${!may_ask(state, body)}>
        ${state.asking ? 'Asking …' : state.quote?.prices?.length ? `Ask, spending ${up(state.quote.prices[0].price)}` : 'Ask'}</button>
      <div role="alert">${state.refused ? html`<p class="warn">${words.was_refused(state.refused)}</p>` : nothing}</div>
    </form>
    ${body ? elsewhere(body, state, on, 'form') : nothing}
  </section>`;
}

/** The groups of a column whose keys are not public: listed, or found. */
const groups = (form, dataset, table) => html`
  ${ways(dataset, table, form.by).length ? html`<label for="find">Groups</label>
    <select id="find" name="find">${option('', 'those that I list', form.find)}${ways(dataset, table, form.by).map((way) => option(way, words.WAYS[way], form.find))}</select>` : nothing}
  ${form.find === 'delta' ? html`<label for="delta">δ, to find them</label>
    <input id="delta" name="delta" inputmode="decimal" autocomplete="off" .value=${form.delta} aria-describedby="find-help">` : nothing}
  ${form.find ? html`<p id="find-help" class="help">${words.FINDS[form.find]}${form.kind === 'count' ? '' : ` ${words.first_found(form.at, form.amount)}`}</p>`
    : html`<label for="keys">${ways(dataset, table, form.by).length ? 'Listed' : 'Groups'} <span class="help">separated by commas</span></label>
      <input id="keys" name="keys" autocomplete="off" .value=${form.keys}>`}`;

/** Whether the groups, or the values, of a column are known without asking for them. */
const has_keys = (table, name) => Boolean(table.columns[name]?.keys) || table.schema.some(([one, type]) => one === name && type === 'bool');

/** What a regression predicts by. */
const predictors = (form, table) => html`<fieldset class="several"><legend>by</legend>
  ${columns_for(form.kind, table).filter((name) => name !== form.of).map((name) => html`
    <label class="check"><input type="checkbox" name=${`with:${name}`} .checked=${Boolean(form[`with:${name}`])}> ${name}</label>`)}
</fieldset>`;

/** The bounds of what is asked of: one pair, or one for each column. */
function bounds(form, table) {
  const others = others_of(form, table);
  const several = OF_SEVERAL.includes(form.kind);
  const all = [[form.of, 'least', 'largest'], ...others.map((name) => [name, `least:${name}`, `largest:${name}`])];
  const known = all.map(([name]) => table.columns[name]?.bounds ?? (several && table.schema.some(([one, type]) => one === name && type === 'bool') ? [0, 1] : null));
  const bound = (b) => (b === null || b === undefined ? '' : typeof b === 'object' ? b.float : String(b));
  return html`<fieldset><legend>Bounds <span class="help">values beyond are moved to them</span></legend>
    ${all.map(([name, least, largest], i) => html`<div class="pair">
      <div><label for=${`least-${i}`} class="plain">${several ? `${name === FORMULA ? 'formula' : name}, ` : ''}least</label><input id=${`least-${i}`} name=${least} inputmode="decimal" placeholder=${bound(known[i]?.[0])} .value=${form[least] ?? ''}></div>
      <div><label for=${`largest-${i}`} class="plain">largest</label><input id=${`largest-${i}`} name=${largest} inputmode="decimal" placeholder=${bound(known[i]?.[1])} .value=${form[largest] ?? ''}></div>
    </div>`)}
    <p class="help">${known.every(Boolean) ? 'Left empty, they are those shown.' : 'From what you know without the data.'}</p></fieldset>`;
}

/** What a quote says. */
function quoted(state, dataset) {
  const {quote} = state;
  if (!quote) return html`<div id="quote" class="quote"><p class="help">${words.more(state.form.at)}</p></div>`;
  if (quote.mistake) {
    const elsewhere_said = ['where', 'of', 'fraction', 'interval', 'bins', 'bounds', 'candidates', 'first', 'by', 'keys', 'discover', 'epsilon', 'rho'].includes(quote.mistake.field);
    return html`<div id="quote" class="quote" aria-live="polite">${elsewhere_said ? nothing : html`<p class="warn">${quote.mistake.message}</p>`}</div>`;
  }
  const unit = words.unit_of(dataset);
  const [first] = quote.prices;
  return html`<div id="quote" class="quote" aria-live="polite">
    <p>${quote.refused ? html`<strong class="warn">${words.would_be_refused(quote)}</strong>` : html`${words.price(quote)} ${first ? html`It would have <strong class="after">${down(first.left_after)}</strong> left.` : nothing}`}
      ${words.factor(quote, unit)} ${words.parts(quote)}</p>
    ${quote.truncation.map((one) => html`<p>${words.truncated(one)}</p>`)}
    ${quote.discovery ? html`<p class="found">${words.found(quote)}</p>` : nothing}
    <p class="exactness">${words.exactness(quote)}</p>
    <p>${words.odds(quote, unit)}</p>
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
