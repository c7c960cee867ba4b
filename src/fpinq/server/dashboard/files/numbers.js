/** Numbers: amounts of ε exactly, as fractions; estimates to two digits of their error. */

/** An exact amount. */
export class Fraction {
  constructor(n, d = 1n) {
    const sign = d < 0n ? -1n : 1n;
    const by = gcd(n < 0n ? -n : n, d < 0n ? -d : d) || 1n;
    this.n = (sign * n) / by;
    this.d = (sign * d) / by;
  }

  /** Of "1/20", "0.05" or "3"; null if it is no number. */
  static of(text) {
    const found = /^\s*(\d{1,40})(?:\.(\d{0,40}))?(?:\/(\d{1,40}))?\s*$/.exec(String(text));
    if (!found || (found[2] !== undefined && found[3] !== undefined)) return null;
    const digits = found[2] ?? '';
    const over = BigInt(found[3] ?? 1);
    if (over === 0n) return null;
    return new Fraction(BigInt(found[1] + digits), over * 10n ** BigInt(digits.length));
  }

  minus(other) { return new Fraction(this.n * other.d - other.n * this.d, this.d * other.d); }
  plus(other) { return new Fraction(this.n * other.d + other.n * this.d, this.d * other.d); }
  above(other) { return this.n * other.d > other.n * this.d; }
  over(other) { return other.n === 0n ? 0 : Number((this.n * other.d * 1000000n) / (this.d * other.n)) / 1000000; }
  get zero() { return this.n === 0n; }
  get number() { return Number(this.n) / Number(this.d); }
}

const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a; };

/** Four places; more for what is less than a hundredth, so that it has three digits. */
function places_for(amount) {
  let places = 4;
  while (!amount.zero && places < 40 && amount.n * 10n ** BigInt(places - 2) < amount.d) places += 1;
  return places;
}

/** An amount for people: exactly where a few places say it, else rounded to its safe side, with ≈. */
function decimal(amount, up) {
  const most = places_for(amount);
  const unit = 10n ** BigInt(most);
  let whole = (amount.n * unit) / amount.d;
  const exact = whole * amount.d === amount.n * unit;
  if (!exact && up) whole += 1n;
  const text = String(whole).padStart(most + 1, '0');
  const places = text.slice(-most).replace(/0+$/, '');
  return (exact ? '' : '≈\u202f') + spaced(text.slice(0, -most)) + (places ? `.${places}` : '');
}

/** What is left: rounded down. */
export const down = (text) => decimal(Fraction.of(text) ?? new Fraction(0n), false);
/** A price: rounded up. */
export const up = (text) => decimal(Fraction.of(text) ?? new Fraction(0n), true);

/** A δ, rounded up as a price is, or down as what is left is: 1e-10. */
export function small(text, upwards = true) {
  const exact = Fraction.of(text);
  if (!exact) return text;
  const [mantissa, power] = Number(text.includes('/') ? text.split('/')[0] / text.split('/')[1] : text).toExponential(12).split('e');
  const rounded = (upwards ? Math.ceil : Math.floor)(Number(mantissa) * 1000 - (upwards ? 1e-6 : -1e-6)) / 1000;
  return rounded === 0 ? '0' : `${rounded}e${Number(power)}`;
}

/** Thousands apart. */
export const spaced = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

/** A number with so many places; large ones with none, and rounded to what the places below zero say. */
export function placed(number, places) {
  if (!Number.isFinite(number)) return number > 0 ? '∞' : number < 0 ? '−∞' : '–';
  const rounded = places < 0 ? Math.round(number / 10 ** -places) * 10 ** -places : number;
  const [whole, rest] = Math.abs(rounded).toFixed(Math.max(0, Math.min(places, 12))).split('.');
  const zero = !/[1-9]/.test(whole + (rest ?? ''));
  return (number < 0 && !zero ? '−' : '') + spaced(whole) + (rest ? `.${rest}` : '');
}

/** How many places two digits of an error have. */
export function places_of(error) {
  if (!(error > 0) || !Number.isFinite(error)) return Number.isInteger(error) ? 0 : 2;
  const places = 1 - Math.floor(Math.log10(error));
  return Number.isInteger(error) ? Math.min(0, places) : places;
}

/** An error: two digits, rounded up. */
export function shown_error(error) {
  const places = places_of(error);
  const unit = 10 ** -places;
  return placed(Math.ceil(error / unit - 1e-9) * unit, places);
}

/** A number of no known error. */
export const plain = (number) => (Number.isInteger(number) ? placed(number, 0) : placed(number, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(number) || 1)))));

/** The half of an answer's interval; null if it has none. */
export function half_of(answer) {
  const [low, high, value] = [answer.low, answer.high, answer.value].map(Number);
  if (answer.low === null || answer.high === null || Number.isNaN(value)) return null;
  return Math.max(high - value, value - low);
}

/** A value of an answer, to two digits of its error; a text or a date as it is. */
export function shown_value(answer) {
  if (answer.value === null) return '–';
  if (typeof answer.value === 'boolean') return String(answer.value);
  const number = Number(answer.value);
  if (Number.isNaN(number)) return String(answer.value);
  const half = half_of(answer);
  return half === null ? plain(number) : placed(number, places_of(half));
}

/** A number rounded up to three digits: of a likelihood ratio. */
export function ratio_up(number) {
  const value = Number(number);
  if (!Number.isFinite(value)) return 'any number of';
  if (value >= 1e6) return `10^${Math.ceil(Math.log10(value))}`;
  const digits = 2 - Math.floor(Math.log10(value));
  const unit = 10 ** -digits;
  return placed(Math.ceil(value / unit - 1e-9) * unit, Math.max(0, digits));
}
