/** Every sentence that explains something. They are reviewed like proofs: bounds are rounded up, what is left down. */
import {down, ratio_up, shown_error, spaced, up} from './numbers.js';

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
};

/** What a record is, where a data set protects it. */
export const unit_of = (dataset) => (dataset?.unit ? dataset.unit : 'row');

export const protects = (dataset) => (dataset.unit ? `protects each ${dataset.unit}, with all its rows` : 'protects each row');

/** What one record can do to the odds. */
export const odds = (ratio, unit) => (ratio === null
  ? 'The budget is in ρ (concentrated): what one record can do is small on average, and has no single bound on the odds.'
  : `No answer is more than ${ratio_up(ratio)} times as likely with any one ${unit} in the data as without, or the other way round.`);

/** What a question costs. */
export function price(quote) {
  const [first] = quote.prices;
  if (!first) return 'Costs nothing: the table is public.';
  const each = quote.prices.map((one) => `${up(one.price)} of ${one.dataset}, which has ${down(one.left)} left${one.cap === null ? '' : ' for you'}`);
  return `Costs ${each.join(', and ')}. The budget is everybody’s, and what is spent never comes back.`;
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
  if (expected.half_width !== null && /rank/.test(expected.unit)) {
    return `The answer will be the value of a row at most ${spaced(String(Math.ceil(Number(expected.half_width))))} ranks away, 95 times in 100. How far that is in value depends on the data.`;
  }
  if (expected.half_width !== null) {
    const each = quote.parts > 1 ? 'Each answer' : 'The answer';
    return `${each} will be within ±${shown_error(Number(expected.half_width))} of the exact one, 95 times in 100.`;
  }
  if (by_size.length) {
    const some = by_size.map((one) => `±${shown_error(Number(one.half_width))} with ${spaced(String(one.size))}`);
    return `How exact it is depends on how many rows there are${quote.parts > 1 ? ' in a group' : ''}: at worst ${some.join(', ')}.`;
  }
  return expected.note;
}

/** Why a question would be refused. */
export function would_be_refused(refused) {
  const {price: costs, dataset, remaining, refused_by: by} = refused.fields;
  const whose = by === 'cap' ? `your share of ${dataset}` : dataset;
  return `Would be refused: it costs ${up(costs)} and ${whose} has ${down(remaining)} left. A smaller ε costs less and is less exact.`;
}

/** Why a question was refused. */
export function was_refused(error) {
  if (error.code !== 'budget_exceeded' || !error.fields.price) return `${error.message}.`;
  const {price: costs, dataset, remaining, refused_by: by} = error.fields;
  const whose = by === 'cap' ? `your share of ${dataset}` : dataset;
  return `Refused, and nothing was charged: it costs ${up(costs)} and ${whose} has ${down(remaining)} left. `
    + 'Refusals depend on these public numbers only, never on the data.';
}

export const INTERVALS = 'Each bar is a 95 % interval of the noise that was added, each by itself; it covers nothing else, such as sampling.';
export const INTERVAL = 'A 95 % interval of the noise that was added; it covers nothing else, such as sampling.';
export const RANKS = 'A quantile is off by ranks: how far that is in value depends on the data, so there is no interval.';
export const CHAIN = 'Newest first. Each entry holds the hash of the one before it, so the last hash stands for all of them.';
export const EPSILON = 'More ε is more exact, and spends more of everybody’s budget.';

export const charged = (answer) => {
  const each = Object.entries(answer.charged).map(([name, amount]) => `${up(amount)} of ${name}`);
  return `Charged ${each.join(' and ')}.`;
};
