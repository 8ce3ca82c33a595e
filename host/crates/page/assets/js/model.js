// The run as the charts want it: one typed array for each column. Times are seconds from the start of the run; what a request does not
// have is NaN.

// The number of LEB128 numbers in a text of bytes: the last byte of each has no high bit.
function countLeb128(bytes) {
  let numbers = 0;
  for (let at = 0; at < bytes.length; at += 1) if (bytes.charCodeAt(at) < 128) numbers += 1;
  return numbers;
}

// Decodes LEB128 numbers into an array from `place` on, and returns their sum.
function readLeb128(bytes, into, place) {
  let [number, factor, sum, next] = [0, 1, 0, place];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes.charCodeAt(at);
    number += (byte & 127) * factor;
    if (byte & 128) factor *= 128;
    else {
      into[next] = number;
      sum += number;
      next += 1;
      [number, factor] = [0, 1];
    }
  }
  return sum;
}

// The chunks of all requests in one row: those of request i are from start[i] to start[i + 1]. The tokens of an answer's chunks add up to
// its output tokens, which are the server's count where it has one: what the host counts in pieces of text can be more or less.
// A truncated answer has no count, and keeps that of its chunks. Numbers are decoded into their final place, because an
// array for each answer took 1.2 s instead of 0.5 s for four million chunks.
function decodeChunks(columns, rows, intended) {
  const coded = columns.chunks || [];
  const start = new Uint32Array(rows + 1);
  const times = new Array(rows);
  const thinned = new Uint8Array(rows);
  for (let row = 0; row < rows; row += 1) {
    const parts = coded[row] ? coded[row].split('.') : [''];
    times[row] = atob(parts[0]);
    thinned[row] = parts[2] && Number(parts[2]) > 1 ? 1 : 0;
    start[row + 1] = start[row] + countLeb128(times[row]);
  }
  const at = new Float64Array(start[rows]);
  const token = new Float32Array(start[rows]);
  for (let row = 0; row < rows; row += 1) {
    const [from, to] = [start[row], start[row + 1]];
    readLeb128(times[row], at, from);
    const tokens = coded[row] ? atob(coded[row].split('.')[1] || '') : '';
    // Without a count of tokens, each chunk has the same.
    let all = tokens && countLeb128(tokens) === to - from ? readLeb128(tokens, token, from) : 0;
    if (!all) {
      token.fill(1, from, to);
      all = to - from;
    }
    const scale = (columns.output_tokens[row] || all) / all;
    let [time, counted] = [0, 0];
    for (let index = from; index < to; index += 1) {
      time += at[index];
      counted += token[index];
      at[index] = intended[row] + time / 1e6;
      token[index] = counted * scale;
    }
  }
  return { start, at, token, thinned };
}

function buildModel(data) {
  const columns = data.requests;
  const rows = columns.shown;
  const texts = columns.texts;
  const intended = new Float64Array(rows);
  let micros = 0;
  for (let row = 0; row < rows; row += 1) {
    micros += columns.intended[row];
    intended[row] = micros / 1e6;
  }
  const after = (name) => {
    const column = columns[name];
    return Float64Array.from(intended, (at, row) =>
      column && column[row] !== null ? at + column[row] / 1e6 : NaN);
  };
  const dispatched = after('dispatched');
  const completed = Float64Array.from(dispatched, (at, row) => at + columns.completed[row] / 1e6);
  const first = after('first_chunk');
  const last = after('last_chunk');
  const ok = Uint8Array.from(dispatched, (_, row) => (columns.failed && columns.failed[row] !== null ? 0 : 1));
  const output = Float64Array.from(columns.output_tokens);
  const chunks = decodeChunks(columns, rows, intended);
  // Requests that held the load while the rest drained are not samples of any metric.
  const drained = (row) => Boolean(columns.drained && columns.drained[row]);
  // The host computes its metrics from measured, answered requests: so does every chart of values, or one metric would have two medians.
  const counts = (row) => Boolean(ok[row]) && !drained(row);
  // The host computes every metric; `observed` has also what was seen of requests that failed, for the lines about one request.
  const declared = new Map((data.metrics || []).map((metric) => [metric.name, metric]));
  const metrics = (columns.metrics || []).map((metric) => {
    const known = declared.get(metric.name);
    const observed = Float64Array.from(metric.values, (value, row) => (value === null || drained(row) ? NaN : value / metric.divisor));
    return {
      name: metric.name, label: known ? known.label : metric.label, short: metric.short, unit: metric.unit, custom: false, observed,
      values: observed.map((value, row) => (counts(row) ? value : NaN)),
    };
  });
  for (const custom of columns.custom || []) {
    const known = declared.get(custom.name);
    const column = new Float64Array(rows).fill(NaN);
    custom.rows.forEach((row, place) => {
      if (custom.values[place] !== null) column[row] = custom.values[place];
    });
    metrics.push({
      name: custom.name, label: known ? known.label : words(custom.name), unit: known ? known.unit : '',
      values: column, observed: column, custom: true,
    });
  }
  const present = metrics.filter((metric) => metric.observed.some((value) => !Number.isNaN(value)));
  const bySession = new Map();
  for (let row = 0; row < rows; row += 1) {
    const session = columns.session[row];
    if (!bySession.has(session)) bySession.set(session, []);
    bySession.get(session).push(row);
  }
  const sessions = new Map(columns.sessions.map(([session, started, finished, end, requests, path]) =>
    [session, {
      started: started === null ? NaN : started / 1e6, finished: finished === null ? NaN : finished / 1e6, end, requests,
      path,
    }]));
  const neverSent = new Map();
  for (const [session, node, reason, at] of columns.never_sent) {
    if (!neverSent.has(session)) neverSent.set(session, []);
    neverSent.get(session).push({ node, reason, at: at / 1e6 });
  }
  neverSent.forEach((nodes) => nodes.sort((a, b) => a.node - b.node));
  const toolRuns = new Map();
  for (const run of columns.tool_runs || []) {
    if (!toolRuns.has(run.session)) toolRuns.set(run.session, []);
    toolRuns.get(run.session).push(run);
  }
  let end = 0;
  let begin = Infinity;
  for (let row = 0; row < rows; row += 1) {
    end = Math.max(end, completed[row]);
    begin = Math.min(begin, intended[row], dispatched[row]);
  }
  if (data.curves && data.curves.step > 0) {
    end = Math.max(end, data.curves.from + data.curves.step * longest(data.curves));
    begin = Math.min(begin, data.curves.from);
  }
  return {
    data, columns, rows, total: columns.total, texts, intended, dispatched, completed, first, last, ok, output, chunks,
    metrics: present, bySession, sessions, neverSent, toolRuns, span: [begin > end * 0.05 && begin < end ? begin : 0, end > 0 ? end : 1],
    drained,
    cancelled: (row) => Boolean(columns.cancelled && columns.cancelled[row]),
    counts,
    // Requests that were cancelled or failed while the run drained do not count as failures: they are shown as drained.
    failed: (row) => !ok[row] && !drained(row),
    anyFailed: ok.some((well, row) => !well && !drained(row)),
    name: (row) => `${columns.session[row]}/${columns.node[row]}`,
    failure: (row) => (ok[row] ? null : texts[columns.failed[row]]),
    message: (row) => texts[columns.message[row]],
    labels: (row) => {
      const pairs = columns.labels ? columns.labels[row] : [];
      const labels = [];
      for (let at = 0; at < pairs.length; at += 2) labels.push([texts[pairs[at]], texts[pairs[at + 1]]]);
      return labels;
    },
    optional: (name, row) => (columns[name] ? columns[name][row] : null),
    metric: (name) => present.find((metric) => metric.name === name),
    rowOf: (name) => {
      for (let row = 0; row < rows; row += 1) if (`${columns.session[row]}/${columns.node[row]}` === name) return row;
      return -1;
    },
  };
}

function longest(curves) {
  return Math.max(...Object.values(curves).map((values) => (Array.isArray(values) ? values.length : 0)));
}

// The least and the most of how many there are at once within each step.
function extremes(begins, ends, from, step, steps) {
  const [least, most] = [new Float64Array(steps), new Float64Array(steps)];
  const [up, down] = [begins.slice().sort(), ends.slice().sort()];
  let [next, over, level] = [0, 0, 0];
  // All that changes at one instant changes at once.
  const change = (at) => {
    while (next < up.length && up[next] <= at) { next += 1; level += 1; }
    while (over < down.length && down[over] <= at) { over += 1; level -= 1; }
  };
  for (let index = 0; index < steps; index += 1) {
    change(from + index * step);
    least[index] = level;
    most[index] = level;
    const end = from + (index + 1) * step;
    for (;;) {
      const at = Math.min(next < up.length ? up[next] : Infinity, over < down.length ? down[over] : Infinity);
      if (!(at < end)) break;
      change(at);
      least[index] = Math.min(least[index], level);
      most[index] = Math.max(most[index], level);
    }
  }
  return { least_in_flight: least, most_in_flight: most };
}

// Load over time as the host computed it from all requests, else computed from those of the page: means over steps, weighted by time.
function loadCurves(model) {
  const computed = model.data.curves;
  if (computed && computed.step > 0) return { ...computed, count: longest(computed), whole: true };
  const steps = Math.max(120, Math.min(400, Math.ceil(model.rows / 4)));
  const [from, to] = model.span;
  const step = (to - from) / steps || 1;
  const sums = () => new Float64Array(steps);
  const curves = {
    from, step, count: steps, whole: model.rows >= model.total, in_flight: sums(), in_prefill: sums(), in_decode: sums(),
    output_tokens_per_second: sums(), input_tokens_per_second: sums(), requests_per_second: sums(),
    ...extremes(model.dispatched, model.completed, from, step, steps),
  };
  const place = (at) => Math.max(0, Math.min(steps - 1, Math.floor((at - from) / step)));
  const spread = (into, begin, end) => {
    if (!(end > begin)) return;
    for (let at = place(begin); at <= place(end); at += 1) {
      const overlap = Math.min(end, from + (at + 1) * step) - Math.max(begin, from + at * step);
      if (overlap > 0) into[at] += overlap / step;
    }
  };
  const { start, at: chunkAt, token } = model.chunks;
  for (let row = 0; row < model.rows; row += 1) {
    spread(curves.in_flight, model.dispatched[row], model.completed[row]);
    spread(curves.in_prefill, model.dispatched[row], Number.isNaN(model.first[row]) ? model.completed[row] : model.first[row]);
    spread(curves.in_decode, model.first[row], model.last[row]);
    // A response that was not streamed has no first chunk.
    const first = Number.isNaN(model.first[row]) ? model.last[row] : model.first[row];
    if (!Number.isNaN(first)) {
      curves.input_tokens_per_second[place(first)] += model.columns.prompt_tokens[row] / step;
    }
    if (model.ok[row]) curves.requests_per_second[place(model.completed[row])] += 1 / step;
    // Tokens stand where their chunks came; without chunk times, where the answer's first and last came.
    if (start[row + 1] > start[row]) {
      for (let index = start[row]; index < start[row + 1]; index += 1) {
        const tokens = token[index] - (index > start[row] ? token[index - 1] : 0);
        curves.output_tokens_per_second[place(chunkAt[index])] += tokens / step;
      }
    } else if (!Number.isNaN(first)) {
      const [begin, end] = [place(first), place(model.last[row])];
      for (let at = begin; at <= end; at += 1) {
        curves.output_tokens_per_second[at] += model.output[row] / (end - begin + 1) / step;
      }
    }
  }
  return curves;
}

// Exact percentile of values in ascending order, between the two nearest ranks (Hyndman and Fan's type 7).
function percentile(sorted, p) {
  if (sorted.length === 0) return NaN;
  const rank = (sorted.length - 1) * p;
  const below = Math.floor(rank);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (rank - below) * (sorted[above] - sorted[below]);
}
