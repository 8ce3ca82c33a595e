// From values to places and back.

function linearScale(domain, range) {
  const [low, high] = domain;
  const width = high - low || 1;
  const scale = (value) => range[0] + ((value - low) / width) * (range[1] - range[0]);
  scale.invert = (place) => low + ((place - range[0]) / (range[1] - range[0])) * width;
  scale.domain = domain;
  scale.ticks = (wanted) => linearTicks(low, high, wanted);
  return scale;
}

function logScale(domain, range) {
  const [low, high] = domain.map((value) => Math.log10(value));
  const width = high - low || 1;
  const scale = (value) => (value > 0
    ? range[0] + ((Math.log10(value) - low) / width) * (range[1] - range[0]) : range[0]);
  scale.invert = (place) => 10 ** (low + ((place - range[0]) / (range[1] - range[0])) * width);
  scale.domain = domain;
  scale.log = true;
  scale.ticks = (wanted) => logTicks(low, high, wanted);
  return scale;
}

// Round values, about as many as wanted.
function linearTicks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) ticks.push(index * step);
  return ticks;
}

// Powers of ten; if they are few, with 2 and 5 between them; if even those are, round values.
function logTicks(low, high, wanted) {
  const within = (factors) => {
    const ticks = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
      for (const factor of factors) {
        const place = power + Math.log10(factor);
        if (place >= low - 1e-9 && place <= high + 1e-9) ticks.push(factor * 10 ** power);
      }
    }
    return ticks;
  };
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = within(factors);
    if (ticks.length <= Math.max(2, wanted)) return ticks.length >= 2 ? ticks : linearTicks(10 ** low, 10 ** high, wanted);
  }
  const tens = within([1]);
  const every = Math.ceil(tens.length / Math.max(1, wanted));
  return tens.filter((_, index) => index % every === 0);
}

// Ticks as text in one unit, with as many digits as tell them apart.
function tickTexts(ticks, unit, log) {
  const largest = Math.max(...ticks.map(Math.abs), 0);
  if (log) return ticks.map((tick) => withUnit(tick, unit === 'tokens' || unit === 'tokens/s' ? '' : unit).replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, ''));
  const as = measure(unit, largest);
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) * as.factor : largest * as.factor;
  const digits = step > 0 ? Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))) : 0;
  return ticks.map((tick) => grouped((tick * as.factor).toFixed(digits)).replace(/^−0(\.0+)?$/, '0'));
}

// Whether a log axis suits sorted values: where one from 0 to the largest would press a quarter of those above 0, or more, into its
// lowest tenth. The plots in the run's folder choose by the same rule.
function suitsLog(sorted, unit) {
  if (unit === 'share' || sorted.length < 10 || sorted[0] < 0) return false;
  const above = sorted.filter((value) => value > 0);
  return above.length > 0 && above[above.length - 1] >= 10 * percentile(above, 0.25);
}

// A log axis has no place for 0: such values are not drawn, and a note states their number.
function offLogAxis(sorted, log) {
  const positive = sorted.findIndex((value) => value > 0);
  return log && positive > 0 ? `${withUnit(positive / sorted.length, 'share')} at 0, not on the log axis` : '';
}

// A little room around sorted values, on the scale that suits them.
function domainOf(sorted, unit) {
  if (!sorted.length) return { domain: [0, 1], log: false };
  const [low, high] = [sorted[0], sorted[sorted.length - 1]];
  if (suitsLog(sorted, unit)) return { domain: [sorted.find((value) => value > 0) / 1.15, high * 1.15], log: true };
  if (low === high) return { domain: low === 0 ? [0, 1] : [Math.min(0, low * 1.2), Math.max(0, low * 1.2)], log: false };
  return { domain: [low >= 0 ? 0 : low - (high - low) * 0.05, high + (high - low) * 0.06], log: false };
}
