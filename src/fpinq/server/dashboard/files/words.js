/** Every sentence that explains something. They are reviewed like proofs: bounds are rounded up, what is left down. */
import {down, ratio_up, shown_error, small, spaced, up} from './numbers.js';

export const KINDS = {
  count: 'How many',
  average: 'Average',
  sum: 'Sum',
  median: 'Median',
  quantile: 'Quantile',
  standard_deviation: 'Standard deviation',
  variance: 'Variance',
  minimum: 'Minimum (nearly)',
  maximum: 'Maximum (nearly)',
  proportion: 'Share',
  distinct_count: 'How many different',
  histogram: 'Histogram',
  cdf: 'Share up to each value',
  mode: 'Most frequent value',
  top: 'Most frequent values',
  covariance: 'Covariance',
  correlation: 'Correlation',
  regression: 'Linear regression',
};

export const LETTERS = {epsilon: 'ε', rho: 'ρ'};
const letter_of = (known) => (known?.rho ? 'ρ' : 'ε');
const in_rho = (one) => (one.notion === 'rho' ? 'ρ ' : '');

/** What a record is, where a data set protects it. */
export const unit_of = (dataset) => (dataset?.unit ? dataset.unit : 'row');

export const protects = (dataset) => (dataset.unit ? `protects each ${dataset.unit}, with all its rows` : 'protects each row');

/** What one record can do to the odds. */
export const odds = ({likelihood_ratio: ratio, prices}, unit) => (ratio === null
  ? prices.every((one) => one.notion === 'epsilon') ? `What any one ${unit} can do to the odds is bounded, but for a chance of δ.`
    : 'The budget is in ρ (concentrated): what one record can do is small on average, and has no single bound on the odds.'
  : `No answer is more than ${ratio_up(ratio)} times as likely with any one ${unit} in the data as without, or the other way round.`);

/** What a question was asked at. */
export const asked_at = (known) => (known.rho ? `ρ ${up(known.rho)}` : `ε ${up(known.epsilon)}`);

/** What a question costs. */
export function price(quote) {
  const [first] = quote.prices;
  if (!first) return 'Costs nothing: the table is public.';
  const each = quote.prices.map((one) => `${in_rho(one)}${up(one.price)} of ${one.dataset}, which has ${down(one.left)} left${one.cap === null ? '' : ' for you'}`);
  return `Costs ${each.join(', and ')}. The budget is everybody’s, and what is spent never comes back.`;
}

export const WAYS = {delta: 'find them: needs δ', domain: 'find them among all of their kind'};
export const FINDS = {
  delta: 'Groups that enough rows have are shown, and no others. A group of a single row is shown with a chance of δ at the most.',
  domain: 'All of their kind get noise, also those that no row has; shown are those with large counts. It needs no δ.',
};
export const first_found = (at, amount) => `To find them is a question of its own, at the same ${LETTERS[at]} ${amount}.`;

/** Which groups are shown, and what that costs of δ. */
export function found({discovery, prices}) {
  const from = `Shown are groups whose noisy counts reach ${spaced(String(discovery.threshold))}: one of ${spaced(String(discovery.shown_from))} rows 95 times in 100.`;
  const costs = prices.filter((one) => one.delta).map((one) => `δ ${small(one.delta.price)} of ${one.dataset}, which has ${small(one.delta.left, false)} left for groups`);
  const false_ones = Number(discovery.delta) === 0 && discovery.delta === '0' ? ` At most ${discovery.expected_false} of them are expected to be nobody’s.` : '';
  return `${from}${false_ones}${costs.length ? ` Costs ${costs.join(', and ')}.` : ''}`;
}

/** Why the price is more than ε. */
export const factor = (quote, unit) => (Number(quote.scaling_factor) > 1
  ? `One ${unit} can touch up to ${spaced(String(quote.scaling_factor))} of these rows, so ${quote.likelihood_ratio === null ? 'the price is larger' : `the price is ${spaced(String(quote.scaling_factor))} times ε`}.` : '');

export const parts = (quote) => (quote.parts > 1 ? `${spaced(String(quote.parts))} groups for the price of one: no row is in two of them.` : '');

/** What is left out before anything is counted. */
export const truncated = (one) => `Of each ${one.unit}, at most ${one.rows_per_unit} ${one.rows_per_unit === 1 ? 'row' : 'rows'} of ${one.table} `
  + `${one.rows_per_unit === 1 ? 'is' : 'are'} in it: the first in the order of its columns. What that leaves out is in no interval.`;

/** How exact an answer will be. */
export function exactness(quote) {
  const {expected_error: expected, expected_errors: by_size} = quote;
  const each = quote.parts > 1 || quote.discovery ? 'Each answer' : 'The answer';
  if (expected.half_width !== null) {
    const rows = spaced(String(Math.ceil(Number(expected.half_width))));
    if (/rank/.test(expected.unit)) return `${each} will be the value of a row at most ${rows} ranks away, 95 times in 100. How far that is in value depends on the data.`;
    if (/best/.test(expected.unit)) return `${each} will be a value that at most ${rows} rows fewer have than the most frequent one, 95 times in 100.`;
    if (/left out/.test(expected.unit)) return `None of them will be in more than ${rows} rows fewer than one that is left out, 95 times in 100.`;
    if (expected.unit === 'records') return `${each} will be the value of a row near the end, ${expected.note}, give or take ${rows}, 95 times in 100. How far that is in value depends on the data.`;
    return `${expected.note === 'for each bin' ? 'Each bar' : each} will be within ±${shown_error(Number(expected.half_width))} of the exact one, 95 times in 100.`;
  }
  if (by_size.length) {
    const [first] = by_size;
    const some = by_size.map((one) => `±${shown_error(Number(one.half_width))} with ${spaced(String(one.size))}`).join(', ');
    const how = /^at most/.test(first.note) ? 'at worst' : /^on average/.test(first.note) ? 'on average over the points' : 'about';
    const only = /\bif deviations.*$/.exec(first.note);
    return `How exact it is depends on how many rows there are${quote.parts > 1 ? ' in a group' : ''}: ${how} ${some}`
      + `${first.unit ? `, in ${first.unit}` : ''}${only ? `, ${only[0]}` : ''}.`;
  }
  return expected.note;
}

/** Why a question would be refused. */
export function would_be_refused(quote) {
  const {price: costs, dataset, remaining, refused_by: by} = quote.refused.fields;
  const whose = by === 'cap' ? `your share of ${dataset}` : dataset;
  if (by === 'delta') return `Would be refused: it costs δ ${small(costs)} and ${dataset} has ${small(remaining, false)} left for groups. A smaller δ costs less and shows fewer.`;
  return `Would be refused: it costs ${up(costs)} and ${whose} has ${down(remaining)} left. A smaller ${letter_of(quote)} costs less and is less exact.`;
}

/** Why a question was refused. */
export function was_refused(error) {
  if (error.code !== 'budget_exceeded' || !error.fields.price) return `${error.message}.`;
  const {price: costs, dataset, remaining, refused_by: by} = error.fields;
  const whose = by === 'cap' ? `your share of ${dataset}` : dataset;
  if (by === 'delta') return `Refused, and nothing was charged: it costs δ ${small(costs)} and ${dataset} has ${small(remaining, false)} left for groups.`;
  return `Refused, and nothing was charged: it costs ${up(costs)} and ${whose} has ${down(remaining)} left. `
    + 'Refusals depend on these public numbers only, never on the data.';
}

export const INTERVALS = 'Each bar is a 95 % interval of the noise that was added, each by itself; it covers nothing else, such as sampling.';
export const INTERVAL = 'A 95 % interval of the noise that was added; it covers nothing else, such as sampling.';
export const RANKS = 'A quantile is off by ranks: how far that is in value depends on the data, so there is no interval.';
export const CHAIN = 'Newest first. Each entry holds the hash of the one before it, so the last hash stands for all of them.';
export const more = (at) => `More ${LETTERS[at]} is more exact, and spends more of everybody’s budget.`;
export const TERMS = 'Each term on a scale of its own, with 0 in the middle: where an interval leaves 0 out, noise alone is not the reason for the term.';

export const charged = (answer) => {
  const notion = (name) => in_rho(answer.prices.find((one) => one.dataset === name) ?? {});
  const each = Object.entries(answer.charged).map(([name, amount]) => `${notion(name)}${up(amount)} of ${name}`);
  const deltas = Object.entries(answer.charged_delta ?? {}).map(([name, amount]) => `δ ${small(amount)} of ${name}`);
  return `Charged ${[...each, ...deltas].join(' and ')}.`;
};
