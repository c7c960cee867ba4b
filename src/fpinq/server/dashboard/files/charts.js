/** Charts, as SVG in CSS pixels: text is never scaled. Each points to the table beside it. */
import {html, nothing, svg} from './vendor/lit-html.js';
import {down, Fraction, half_of, placed, plain, shown_error, shown_value, up} from './numbers.js';

const ROW = 30;

/** About so many round numbers between two. */
function ticks(low, high, about) {
  const span = high - low || 1;
  const raw = span / Math.max(1, about);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
  return {found, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9))};
}

const number = (text) => (text === null ? NaN : Number(text));
const ends = (answer) => [answer.low === null ? number(answer.value) : number(answer.low), answer.high === null ? number(answer.value) : number(answer.high)];
const label_of = (key) => key.map((one) => (one === null ? 'null' : String(one))).join(', ');
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Groups: a dot for each with its interval, in rows, so that labels stay horizontal. */
export function groups(answers, what, width, title) {
  const finite = answers.flatMap(ends).filter(Number.isFinite);
  if (!finite.length) return nothing;
  let [low, high] = [Math.min(...finite), Math.max(...finite)];
  if (low === high) [low, high] = [low - 1, high + 1];
  const longest = Math.max(...answers.map((a) => Math.min(22, label_of(a.key).length)));
  const left = Math.min(width * 0.38, 16 + longest * 7.4);
  const right = width - 14;
  const at = (x) => left + 8 + ((Math.max(low, Math.min(high, x)) - low) / (high - low)) * (right - left - 16);
  const marks = ticks(low, high, Math.max(2, (right - left) / 100));
  const foot = answers.length * ROW + 6;
  return svg`<svg class="chart" role="img" width=${width} height=${foot + 42} viewBox="0 0 ${width} ${foot + 42}">
    <title>${title}: ${answers.length} groups with their intervals. The same numbers are in the table below.</title>
    ${marks.found.map((x) => svg`<line class="grid" x1=${at(x)} x2=${at(x)} y1="0" y2=${foot}></line>
      <text class="tick" x=${at(x)} y=${foot + 17} text-anchor="middle">${placed(x, marks.places)}</text>`)}
    <line class="axis" x1=${left} x2=${right} y1=${foot} y2=${foot}></line>
    <text class="tick what" x=${right} y=${foot + 35} text-anchor="end">${what}</text>
    ${answers.map((answer, row) => {
    const y = row * ROW + ROW / 2;
    const [a, b] = ends(answer).map(at);
    const zero = answer.low !== null && number(answer.low) <= 0 && number(answer.high) >= 0;
    return svg`<text class="label" x=${left - 8} y=${y + 4} text-anchor="end">${cut(label_of(answer.key), 22)}</text>
      ${answer.low === null ? nothing : svg`<path class="interval" d="M${a} ${y}H${b}M${a} ${y - 5}V${y + 5}M${b} ${y - 5}V${y + 5}"></path>`}
      <circle class=${zero ? 'dot hollow' : 'dot'} cx=${at(number(answer.value))} cy=${y} r="4.5"></circle>`;
  })}
  </svg>`;
}

/** Terms of a regression: each on a scale of its own, with 0 in the middle. */
export function terms(answers, width, title) {
  const told = answers.map((answer) => `${shown_value(answer)}${half_of(answer) === null ? '' : ` ± ${shown_error(half_of(answer))}`}`);
  const longest = (texts) => Math.max(...texts.map((text) => text.length));
  const left = Math.min(width * 0.34, 16 + Math.min(22, longest(answers.map((a) => label_of(a.key)))) * 7.4);
  const right = width - Math.min(width * 0.44, 16 + longest(told) * 7.2);
  const [middle, half, foot] = [(left + right) / 2, Math.max(10, (right - left) / 2 - 4), answers.length * ROW];
  return svg`<svg class="chart" role="img" width=${width} height=${foot} viewBox="0 0 ${width} ${foot}">
    <title>${title}: ${answers.length} terms with their intervals. The same numbers are in the table below.</title>
    <line class="axis" x1=${middle} x2=${middle} y1="0" y2=${foot}></line>
    ${answers.map((answer, row) => {
    const y = row * ROW + ROW / 2;
    const [low, high] = ends(answer);
    const most = Math.max(...[low, high, number(answer.value)].filter(Number.isFinite).map(Math.abs)) || 1;
    const at = (x) => middle + (Math.max(-most, Math.min(most, x)) / most) * half;
    const zero = low <= 0 && high >= 0;
    return svg`<text class="label" x=${left - 8} y=${y + 4} text-anchor="end">${cut(label_of(answer.key), Math.floor((left - 10) / 7.4))}</text>
      ${answer.low === null ? nothing : svg`<path class="interval" d="M${at(low)} ${y}H${at(high)}M${at(low)} ${y - 5}V${y + 5}M${at(high)} ${y - 5}V${y + 5}"></path>`}
      ${answer.value === null ? nothing : svg`<circle class=${zero ? 'dot hollow' : 'dot'} cx=${at(number(answer.value))} cy=${y} r="4.5"></circle>`}
      <text class="tick" x=${width} y=${y + 4} text-anchor="end">${told[row]}</text>`;
  })}
  </svg>`;
}

/** Bins: bars from 0, each with its interval; negatives are shown as they are. */
export function bins(answers, what, width, title, steps = false) {
  const values = answers.flatMap((a) => [number(a.value), ...ends(a)]).filter(Number.isFinite);
  if (!values.length) return nothing;
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const marks = ticks(low, high || 1, 4);
  const [top, tall, left] = [22, 190, 18 + Math.max(...marks.found.map((y) => placed(y, marks.places).length)) * 7.2];
  const scale = (y) => top + tall - ((y - low) / ((high - low) || 1)) * tall;
  const each = (width - left - 8) / answers.length;
  const every = Math.max(1, Math.ceil(46 / each));
  const edge = (answer) => plain(Number(answer.key[0]));
  return svg`<svg class="chart" role="img" width=${width} height=${top + tall + 26} viewBox="0 0 ${width} ${top + tall + 26}">
    <title>${title}: ${answers.length} bars with their intervals. The same numbers are in the table below.</title>
    <text class="tick what" x="0" y="11">${what}</text>
    ${marks.found.map((y) => svg`<line class="grid" x1=${left} x2=${width} y1=${scale(y)} y2=${scale(y)}></line>
      <text class="tick" x=${left - 8} y=${scale(y) + 4} text-anchor="end">${placed(y, marks.places)}</text>`)}
    ${answers.map((answer, i) => {
    const [x, wide, y] = [left + i * each, Math.max(1, each - (each > 6 ? 2 : 0)), scale(number(answer.value))];
    const [a, b] = ends(answer).map(scale);
    const [c, w] = [x + wide / 2, Math.min(4, each / 3)];
    return svg`<rect class="bar" x=${x} width=${wide} y=${Math.min(y, scale(0))} height=${Math.abs(y - scale(0))}></rect>
      ${each > 5 && answer.low !== null ? svg`<path class="interval" d="M${c} ${a}V${b}M${c - w} ${a}H${c + w}M${c - w} ${b}H${c + w}"></path>` : nothing}
      ${i % every === 0 ? svg`<text class="tick" x=${steps ? c : x} y=${top + tall + 18} text-anchor="middle">${edge(answer)}</text>` : nothing}`;
  })}
    <line class="axis" x1=${left} x2=${width} y1=${scale(0)} y2=${scale(0)}></line>
  </svg>`;
}

/** One answer: its value, large, and where it is. */
export function single(answer, what) {
  const half = half_of(answer);
  return html`<p class="value"><span class="figure">${shown_value(answer)}</span>
    ${half === null ? nothing : html`<span class="error">± ${shown_error(half)}</span>`}
    ${answer.ranks === null || half !== null ? nothing : html`<span class="error">± ${answer.ranks} ranks</span>`}
    <span class="of">${what}</span></p>`;
}

/** What is spent of a budget, what this question takes, and what is left: three textures. */
export function budget(total, remaining, takes, title) {
  const [all, left, cost] = [total, remaining, takes ?? '0'].map((text) => Fraction.of(text) ?? new Fraction(0n));
  const spent = all.minus(left).over(all);
  const asked = Math.min(cost.over(all), Math.max(0, 1 - spent));
  const too_much = cost.above(left);
  return html`<svg class="budget" role="img" width="100%" height="14" preserveAspectRatio="none" viewBox="0 0 1000 14" aria-label=${title}>
    <rect class="spent" x="0" y="1" width=${spent * 1000} height="12"></rect>
    ${asked > 0 ? svg`<rect class=${too_much ? 'asked warn' : 'asked'} x=${spent * 1000} y="1" width=${Math.max(4, asked * 1000)} height="12"></rect>` : nothing}
    <rect class="frame" x="0.5" y="0.5" width="999" height="13"></rect>
  </svg>`;
}

/** What was spent as it grew. */
export function growth(spent, all_width) {
  const width = Math.min(all_width, 640);
  const all = Fraction.of(spent.budget);
  const points = spent.over_time.map((one) => [Date.parse(one.at), Fraction.of(one.spent).over(all)]);
  if (points.length < 2) return nothing;
  const [first, last] = [points[0][0], points.at(-1)[0]];
  const [tall, left] = [90, 12 + 7.4 * down(spent.budget).length];
  const x = (t) => left + ((t - first) / ((last - first) || 1)) * (width - left - 6);
  const y = (f) => 8 + (1 - f) * tall;
  let path = `M${x(first)} ${y(1)}`;
  let before = 0;
  for (const [t, f] of points) { path += `H${x(t)}V${y(1 - f)}`; before = f; }
  const when = (t) => new Date(t).toISOString().slice(0, last - first < 3600000 ? 19 : 16).replace('T', ' ');
  return svg`<svg class="chart" role="img" width=${width} height=${tall + 34} viewBox="0 0 ${width} ${tall + 34}">
    <title>What is left of ${spent.name}, from ${when(first)} to ${when(last)}: ${Math.round((1 - before) * 100)} % in the end</title>
    <path class="area" d="${path}V${y(0)}H${x(first)}Z"></path><path class="interval" d=${path}></path>
    <line class="axis" x1=${left} x2=${width - 6} y1=${y(0)} y2=${y(0)}></line>
    <text class="tick" x=${left - 8} y=${y(1) + 4} text-anchor="end">${down(spent.budget)}</text><text class="tick" x=${left - 8} y=${y(0) + 4} text-anchor="end">0</text>
    <text class="tick" x=${left} y=${tall + 26}>${when(first)}</text>
    <text class="tick" x=${width - 6} y=${tall + 26} text-anchor="end">${when(last)}</text>
  </svg>`;
}

/** How a table was made, with every factor. */
export function derivation(answer, dataset_unit, width) {
  const steps = [];
  const first = answer.derivation[0];
  if (first && first.rows_per_unit !== null && !first.parents.length) {
    steps.push({label: answer.prices[0]?.dataset ?? '', note: `protects each ${dataset_unit}`, by: null});
    steps.push({label: first.label, note: `factor ${first.factor}`, by: `× ${first.factor}: so many rows of one ${dataset_unit}`});
  }
  answer.derivation.forEach((step, i) => {
    if (i === 0 && steps.length) return;
    const note = step.parents.length ? `factor ${step.factor}` : `protects each ${dataset_unit}`;
    const by = step.parents.length ? step.stability.map((c) => `× ${c}`).join(' + ') || (step.rows_per_unit === null ? '' : `at most ${step.rows_per_unit} of one ${dataset_unit}`) : null;
    steps.push({label: step.label, note, by});
  });
  if (answer.parts > 1) steps.push({label: `by ${answer.key_columns.join(', ')}`, note: `${answer.parts} parts, disjoint`, by: '× 1, the largest part'});
  const cost = answer.prices.map((one) => `${up(one.price)} of ${one.dataset}`).join(', ');
  steps.push({label: answer.words.split(' in ')[0], note: `${answer.rho ? `ρ ${up(answer.rho)}` : `ε ${up(answer.epsilon)}`}${answer.likelihood_ratio === null ? ` at factor ${answer.scaling_factor} costs ρ` : ` × factor ${answer.scaling_factor} =`} ${cost}`, by: `factor ${answer.scaling_factor}`, last: true});
  const [tall, gap, wide] = [46, 30, Math.min(width - 4, 440)];
  const height = steps.length * (tall + gap) - gap + 4;
  const most = Math.floor(wide / 7.4);
  return svg`<svg class="chart derivation" role="img" width=${wide + 4} height=${height} viewBox="0 0 ${wide + 4} ${height}">
    <title>How it was made: ${steps.map((s) => `${s.by ? `${s.by}, ` : ''}${s.label} (${s.note})`).join('; ')}</title>
    ${steps.map((step, i) => {
    const y = 2 + i * (tall + gap);
    return svg`${step.by === null ? nothing : svg`<path class="arrow" d="M22 ${y - gap}V${y - 2}M18 ${y - 7}L22 ${y - 2}L26 ${y - 7}"></path>
      <text class="tick" x="34" y=${y - gap / 2 + 4}>${cut(step.by, most)}</text>`}
      <rect class=${step.last ? 'box last' : 'box'} x="2" y=${y} width=${wide} height=${tall} rx="3"></rect>
      <text class="label" x="12" y=${y + 19}>${cut(step.label, most - 2)}</text>
      <text class="tick" x="12" y=${y + 36}>${cut(step.note, most)}</text>`;
  })}
  </svg>`;
}
