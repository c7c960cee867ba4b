/** A form, and the question that it is. */
import {column} from './programs.js';

export const NUMERIC = ['int64', 'float64'];
export const OF_TWO = ['covariance', 'correlation'];
export const OF_SEVERAL = [...OF_TWO, 'regression'];
export const OF_NUMBERS = ['average', 'sum', 'median', 'quantile', 'standard_deviation', 'variance', 'minimum', 'maximum', 'histogram', 'cdf', ...OF_SEVERAL];
export const BINNED = ['histogram', 'cdf'];
export const CHOSEN = ['mode', 'top'];
export const FORMULA = '\u0000formula';

/** The steps of a slider: 1, 1.5, 2, 3, 5, 7 and so on; of a ρ over smaller numbers. */
const steps = (powers, last) => powers.flatMap((k) => [1, 1.5, 2, 3, 5, 7].map((m) => String(Number((m * 10 ** k).toPrecision(2))))).concat(last);
export const STEPS = {epsilon: steps([-3, -2, -1, 0], '10'), rho: steps([-5, -4, -3, -2, -1], '1')};
const FIRST = {epsilon: '0.1', rho: '0.005'};

/** The step that an amount is nearest to. */
export const nearest = (text, at) => {
  const wanted = Math.log(Number(text) || Number(FIRST[at]));
  const far = STEPS[at].map((one) => Math.abs(Math.log(one) - wanted));
  return far.indexOf(Math.min(...far));
};

/** All tables, with what they are called in a question. */
export const tables_of = (datasets) => datasets.flatMap((dataset) => dataset.tables.map((table) => ({
  dataset, table, name: dataset.tables.length === 1 && table.name === dataset.name ? dataset.name : `${dataset.name}.${table.name}`,
})));

const type_of = (table, name) => table.schema.find(([one]) => one === name)?.[1];

/** The columns that a kind can be asked of. */
export const columns_for = (kind, table) => table.schema.filter(([, type]) => !OF_NUMBERS.includes(kind) || NUMERIC.includes(type)
  || (OF_SEVERAL.includes(kind) && type === 'bool')).map(([name]) => name);

/** The form of a table, as it begins; at is what its budget is in, "epsilon" or "rho". */
export const form_of = ({name, table}, at) => ({
  table: name, where: '', kind: 'count', of: table.schema[0]?.[0] ?? '', other: '', formula: '', least: '', largest: '',
  by: '', keys: '', find: '', delta: '', fraction: '0.9', interval: false, bins: '20', first: '3', candidates: '', at, amount: FIRST[at],
});

/** The form after one of its fields changed. */
export function edited(form, name, value, {datasets, at_of}) {
  let next = {...form, [name]: value};
  if (name === 'slider') { next.amount = STEPS[form.at][Number(value)]; delete next.slider; }
  if (name === 'at') next.amount = FIRST[value];
  const found = tables_of(datasets).find((one) => one.name === next.table);
  if (name === 'table') {
    const at = at_of(found.dataset.name);
    next = {...form_of(found, at), kind: form.kind, ...(at === form.at ? {amount: form.amount} : {})};
  }
  const possible = columns_for(next.kind, found.table);
  if (next.of !== FORMULA && !possible.includes(next.of)) next.of = possible[0] ?? FORMULA;
  const others = possible.filter((one) => one !== next.of);
  if (OF_TWO.includes(next.kind) && !others.includes(next.other)) next.other = others[0] ?? '';
  if (name === 'of' || name === 'table') Object.assign(next, {least: '', largest: '', candidates: ''});
  if (name === 'by') Object.assign(next, {keys: '', find: ''});
  if (name === 'find' && !next.delta && found.dataset.keys_delta) next.delta = tenth(found.dataset.keys_delta);
  return next;
}

/** The columns beside the first: of a covariance one, of a regression those that are ticked. */
export const others_of = (form, table) => (OF_TWO.includes(form.kind) ? [form.other].filter(Boolean)
  : form.kind === 'regression' ? columns_for(form.kind, table).filter((name) => name !== form.of && form[`with:${name}`]) : []);

/** A tenth of a δ, to begin with. */
const tenth = (text) => {
  const [above, below = '1'] = text.split('/');
  return String(Number((Number(above) / Number(below) / 10).toPrecision(2)).toExponential()).replace('e+0', '');
};

/** All keys of a type, of which those are found that are common: without a δ. */
export const DOMAINS = {
  string: {op: 'strings', max_bytes: 32},
  int64: {op: 'integers', low: -1_000_000_000, high: 1_000_000_000},
  date: {op: 'dates', first: {date: '1900-01-01'}, last: {date: '2100-12-31'}},
};

/** How the groups of a column can be found that nobody listed: at a δ, if there is one, and among all of a kind. */
export const ways = (dataset, table, by) => (DOMAINS[type_of(table, by)] ? [...(dataset.keys_delta ? ['delta'] : []), 'domain'] : []);

/** What the body of a question says of groups that are to be found. */
function discover(form, type) {
  const at = form.kind === 'count' ? {} : {[form.at]: form.amount.trim()};
  return form.find === 'delta' ? {delta: form.delta.trim(), ...at} : {within: DOMAINS[type], ...at};
}

/** Values that were written with commas between them, as their type says. */
const values = (text, type) => text.split(',').map((one) => one.trim()).filter(Boolean).map((one) => {
  if (type === 'bool' || (!type && /^(true|false)$/.test(one))) return one === 'true';
  return NUMERIC.includes(type) || (!type && /^-?\d+(\.\d+)?$/.test(one)) ? Number(one) : one;
});

const pair = (least = '', largest = '') => (least.trim() || largest.trim() ? [least.trim(), largest.trim()] : null);

/** The body of the question that the form is; null where something is still to be said. */
export function question_of(form, datasets) {
  const found = tables_of(datasets).find((one) => one.name === form.table);
  if (!found) return null;
  const {table} = found;
  const {kind} = form;
  const body = {table: form.table, kind, [form.at]: form.amount.trim()};
  if (form.where.trim()) body.where = form.where.trim();
  if (kind !== 'count') {
    const of = form.of === FORMULA || kind === 'proportion' ? form.formula.trim() : form.of && column(form.of);
    if (!of) return null;
    body.of = of;
  }
  const bounds = pair(form.least, form.largest);
  if (OF_SEVERAL.includes(kind)) {
    const others = others_of(form, table);
    if (!others.length) return null;
    body.of = [body.of, ...others.map(column)];
    const each = [bounds, ...others.map((name) => pair(form[`least:${name}`], form[`largest:${name}`]))];
    if (each.some(Boolean)) body.bounds = each;
  } else if (OF_NUMBERS.includes(kind) && bounds) {
    body.bounds = bounds;
  }
  if (kind === 'quantile') body.fraction = form.fraction.trim();
  if (['median', 'quantile'].includes(kind) && form.interval) body.interval = '0.95';
  if (BINNED.includes(kind)) body.bins = Number(form.bins) || 20;
  if (kind === 'top') body.first = Number(form.first) || 1;
  if (CHOSEN.includes(kind)) {
    const type = type_of(table, form.of);
    const some = type === 'bool' ? [false, true] : values(form.candidates, type);
    if (some.length) body.candidates = some;
  }
  if (form.by) {
    body.by = column(form.by);
    const type = type_of(table, form.by);
    const keys = values(form.keys, type);
    if (form.find && !DOMAINS[type]) return null;
    if (form.find === 'delta' && !form.delta.trim()) return null;
    if (form.find) body.discover = discover(form, type);
    else if (keys.length) body.keys = keys;
  }
  return body;
}

/** Whether the price of just this question is known, and can be paid. */
export const may_ask = (state, body) => Boolean(body) && state.quoted === JSON.stringify(body) && !state.quote.mistake && !state.quote.refused && !state.asking;
