// Numbers as text. A narrow no-break space separates a number from its unit, and thousands.

const THIN = '\u202f';
const NONE = '–';

function grouped(text) {
  const [whole, part] = text.split('.');
  const sign = whole.startsWith('-') ? '−' : '';
  const digits = whole.replace('-', '');
  const shown = digits.length > 4 ? digits.replace(/\B(?=(\d{3})+$)/g, THIN) : digits;
  return sign + shown + (part ? '.' + part : '');
}

function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

function count(value) {
  return isNumber(value) ? grouped(String(Math.round(value))) : NONE;
}

// Digits behind the point that leave three that count.
function digitsFor(value) {
  const size = Math.abs(value);
  if (size === 0 || size >= 100) return 0;
  if (size >= 10) return 1;
  if (size >= 1) return 2;
  return Math.min(6, 2 - Math.floor(Math.log10(size)));
}

// The format of numbers of a unit near a size: the factor and the suffix.
function measure(unit, size) {
  const near = Math.abs(isNumber(size) ? size : 0);
  if (unit === 's') {
    if (near < 1e-3) return { factor: 1e6, suffix: 'µs' };
    if (near < 1) return { factor: 1e3, suffix: 'ms' };
    return { factor: 1, suffix: 's' };
  }
  if (unit === 'share') return { factor: 100, suffix: '%' };
  return { factor: 1, suffix: unit === '1' ? '' : unit || '' };
}

// A number without its unit, written as its neighbours are.
function bare(value, as) {
  if (!isNumber(value)) return NONE;
  const scaled = value * as.factor;
  return grouped(scaled.toFixed(Number.isInteger(scaled) && as.factor === 1 ? 0 : digitsFor(scaled)));
}

function withUnit(value, unit, size) {
  if (!isNumber(value)) return NONE;
  const as = measure(unit, size === undefined ? value : size);
  if (unit === 's' && Math.abs(value) >= 120) return clock(value);
  return bare(value, as) + (as.suffix ? (as.suffix === '%' ? '' : '') + THIN + as.suffix : '');
}

// A length of time of minutes and hours.
function clock(seconds) {
  if (!isNumber(seconds)) return NONE;
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}${THIN}h` : `${minutes}:${two(rest)}${THIN}min`;
}

// An instant of the run, exact enough to find it again in a range of this length.
function instant(seconds, span) {
  if (!isNumber(seconds)) return NONE;
  const digits = span > 300 ? 0 : span > 30 ? 1 : span > 3 ? 2 : span > 0.3 ? 3 : 4;
  return grouped(seconds.toFixed(digits)) + THIN + 's';
}

function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

function words(name) {
  return name.replace(/_/g, ' ');
}
