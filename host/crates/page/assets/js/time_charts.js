// Charts over the time of the run. They share one axis: zooming one zooms all.

const timeAxis = new Axis();

const timeBrush = {
  brush: 'x',
  brushed: () => (selection.time ? { x: selection.time } : null),
  onBrush: (range) => select({ time: range ? range.x : null }),
};

const BARS = { wait: 'dim', prefill: 'orange', decode: 'blue', failed: 'vermillion' };

// The steps of the curves within view, as a line of steps.
function stepLine(context, plot, curves, values, close) {
  const { from, step } = curves;
  context.beginPath();
  let begun = false;
  for (let index = 0; index < values.length; index += 1) {
    const begin = from + index * step;
    if (begin + step < plot.x.domain[0] || begin > plot.x.domain[1]) continue;
    const [x0, x1, y] = [plot.x(begin), plot.x(begin + step), plot.y(values[index])];
    if (!begun && close) context.moveTo(x0, plot.y(0));
    context[begun || close ? 'lineTo' : 'moveTo'](x0, y);
    context.lineTo(x1, y);
    begun = x1;
  }
  if (close && begun) context.lineTo(begun, plot.y(0));
}

// Between the least and the most of each step: a short peak is visible, although the mean hardly contains it.
function envelope(context, plot, { from, step, least_in_flight: least = [], most_in_flight: most = [] }) {
  context.beginPath();
  for (let index = 0; index < most.length; index += 1) {
    const begin = from + index * step;
    if (begin + step < plot.x.domain[0] || begin > plot.x.domain[1]) continue;
    const [x, y] = [plot.x(begin), plot.y(most[index])];
    context.rect(x, y, plot.x(begin + step) - x, plot.y(least[index]) - y);
  }
}

function largest(values) {
  let most = 0;
  for (const value of values || []) most = Math.max(most, value);
  return most;
}

function stepAt(curves, x) {
  const index = Math.floor((x - curves.from) / curves.step);
  return index >= 0 && index < curves.count ? index : -1;
}

function concurrencyChart(page) {
  const plot = new Plot({
    ...timeBrush, id: 'plot-concurrency', title: 'Requests in flight', height: 150, axis: timeAxis, x: { unit: 's' },
    y: () => ({ domain: [0, largest(page.curves.most_in_flight || page.curves.in_flight) * 1.08 || 1], unit: '' }),
    draw(context) {
      const { curves } = page;
      const { colors } = theme;
      const prefill = curves.in_prefill || [];
      const stacked = (curves.in_decode || []).map((value, index) => value + (prefill[index] || 0));
      // The range is behind the areas, which cover it: colors that overlap look like a third one.
      envelope(context, plot, curves);
      context.fillStyle = colors.dim;
      context.fill();
      for (const [values, color] of [[stacked, colors.panel], [stacked, colors.sky], [prefill, colors.panel], [prefill, colors.orange]]) {
        stepLine(context, plot, curves, values, true);
        context.fillStyle = color;
        context.globalAlpha = color === colors.panel ? 1 : 0.7;
        context.fill();
        context.globalAlpha = 1;
      }
      for (const [values, width] of [[curves.least_in_flight || [], 0.6], [curves.in_flight || [], 1.25]]) {
        stepLine(context, plot, curves, values, false);
        context.strokeStyle = colors.ink;
        context.lineWidth = width;
        context.stroke();
      }
    },
    read(_, x) {
      const { curves } = page;
      const index = stepAt(curves, plot.x.invert(x));
      if (index < 0) return null;
      const line = (name, values) => (values && values.length ? [[name, bare(values[index], { factor: 1 })]] : []);
      return {
        lines: [[instant(curves.from + (index + 0.5) * curves.step, curves.step * 30)], ...line('in flight', curves.in_flight),
          ...line('at least', curves.least_in_flight), ...line('at most', curves.most_in_flight),
          ...line('in prefill', curves.in_prefill), ...line('in decode', curves.in_decode)],
      };
    },
    describe: () => (page.curves.most_in_flight ? `At most ${bare(largest(page.curves.most_in_flight), { factor: 1 })} in flight; ` : '')
      + `the lines are means over steps of ${withUnit(page.curves.step, 's')}.`,
  });
  plot.setLegend([['ink', 'in flight: mean (thick line), least (thin line)', 'rule'], ['dim', 'least to most'], ['orange', 'prefill'], ['sky', 'decode']]);
  return plot;
}

const RATES = [
  ['output_tokens_per_second', 'Output tokens per second', 'tokens/s'],
  ['input_tokens_per_second', 'Prompt tokens per second', 'tokens/s'],
  ['requests_per_second', 'Answered requests per second', 'requests/s'],
];

function throughputChart(page) {
  let rate = RATES[0];
  const values = () => page.curves[rate[0]] || [];
  const plot = new Plot({
    ...timeBrush, id: 'plot-throughput', title: 'Throughput', height: 130, axis: timeAxis, x: { unit: 's' },
    controls: [selectBox('Rate', RATES, rate[0], (name) => {
      rate = RATES.find((entry) => entry[0] === name);
      plot.redraw();
    })],
    y: () => ({ domain: [0, largest(values()) * 1.08 || 1], unit: '' }),
    draw(context) {
      stepLine(context, plot, page.curves, values(), true);
      context.fillStyle = theme.colors.green;
      context.globalAlpha = 0.16;
      context.fill();
      context.globalAlpha = 1;
      stepLine(context, plot, page.curves, values(), false);
      context.strokeStyle = theme.colors.green;
      context.lineWidth = 1.25;
      context.stroke();
    },
    read(_, x) {
      const index = stepAt(page.curves, plot.x.invert(x));
      if (index < 0 || !values().length) return null;
      const at = instant(page.curves.from + (index + 0.5) * page.curves.step, page.curves.step * 30);
      return { lines: [[at], [rate[1].toLowerCase(), bare(values()[index], { factor: 1 })]] };
    },
    describe: () => `${rate[1]}, at most ${count(largest(values()))}.`,
  });
  return plot;
}

// SLOs that bound a metric's percentile or mean: a line in the chart of the metric.
function boundsOf(data, metric) {
  const bounds = [];
  for (const slo of data.slos || []) {
    const match = /^\s*([a-z]+[0-9.]*)\(\s*([a-z0-9_]+)\s*[,){]/.exec(slo.expression);
    if (match && match[2] === metric.name && match[1] !== 'count' && match[1] !== 'sum' && isNumber(slo.bound)) {
      bounds.push([slo.bound, slo.expression]);
    }
  }
  return bounds;
}

function scatterChart(page) {
  let metric = null;
  const range = () => {
    const { domain, log } = domainOf(metric.values.filter((value) => value === value).sort(), metric.unit);
    return { domain, log, unit: metric.unit };
  };
  let y = null;
  const choose = selectBox('Metric', [], '', (name) => {
    const before = metric.name;
    metric = page.model.metric(name);
    y = null;
    plot.explain();
    plot.redraw();
    if (selection.values.has(before)) selectValues(before, null);
  });
  // A log axis has no place for 0.
  const isOnAxis = (value) => !plot.yAxis.log || value > 0;
  const plot = new Plot({
    id: 'plot-scatter', title: 'Requests by dispatch time', height: 230, axis: timeAxis, x: { unit: 's' }, controls: [choose],
    y: () => (y = y || (metric ? range() : { domain: [0, 1], unit: '' })),
    brush: 'xy',
    brushed: () => {
      const values = metric && selection.values.get(metric.name);
      return selection.time || values ? { x: selection.time, y: values } : null;
    },
    onBrush(brushed) {
      if (!metric) return;
      if (brushed && brushed.y) selection.values.set(metric.name, brushed.y);
      else selection.values.delete(metric.name);
      select({ time: brushed && brushed.x ? brushed.x : null });
    },
    draw(context) {
      if (!metric) return;
      const { colors } = theme;
      const { model: now } = page;
      const { bottom, left } = plot.box;
      const size = now.rows > 4000 ? 2 : now.rows > 1000 ? 2.5 : now.rows > 200 ? 3 : 4;
      const paint = (wanted, color, alpha) => {
        context.fillStyle = color;
        context.globalAlpha = alpha;
        for (let row = 0; row < now.rows; row += 1) {
          if (selection.mask[row] !== wanted) continue;
          const value = metric.values[row];
          if (value !== value || !isOnAxis(value)) continue;
          context.fillRect(plot.x(now.dispatched[row]) - size / 2, plot.y(value) - size / 2, size, size);
        }
        context.globalAlpha = 1;
      };
      paint(0, colors.dim, 0.8);
      paint(1, colors.blue, now.rows > 4000 ? 0.5 : 0.7);
      // Failures have no value: they are marked on the axis.
      context.strokeStyle = colors.vermillion;
      context.lineWidth = 1.5;
      for (let row = 0; row < now.rows; row += 1) {
        if (!now.failed(row)) continue;
        const x = plot.x(now.dispatched[row]);
        context.globalAlpha = selection.mask[row] ? 1 : 0.25;
        context.beginPath();
        context.moveTo(x, bottom);
        context.lineTo(x, bottom - 9);
        context.stroke();
      }
      context.globalAlpha = 1;
      context.textAlign = 'left';
      context.textBaseline = 'bottom';
      let free = Infinity;
      for (const [bound, text] of boundsOf(page.data, metric).sort((a, b) => a[0] - b[0])) {
        const at = Math.round(plot.y(bound)) + 0.5;
        context.strokeStyle = colors.purple;
        context.lineWidth = 1;
        context.setLineDash([5, 4]);
        context.beginPath();
        context.moveTo(left, at);
        context.lineTo(plot.box.right, at);
        context.stroke();
        context.setLineDash([]);
        if (Math.abs(free - at) < 14) continue;
        const wide = context.measureText(text).width;
        context.fillStyle = colors.panel;
        context.globalAlpha = 0.8;
        context.fillRect(left + 4, at - 15, wide + 6, 13);
        context.globalAlpha = 1;
        context.fillStyle = colors.purple;
        context.fillText(text, left + 7, at - 2);
        free = at;
      }
    },
    over(context) {
      const row = selection.focus;
      if (row < 0 || !metric || metric.values[row] !== metric.values[row] || !isOnAxis(metric.values[row])) return;
      context.strokeStyle = theme.colors.ink;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(plot.x(page.model.dispatched[row]), plot.y(metric.values[row]), 6, 0, 7);
      context.stroke();
    },
    read(_, x, y0) {
      if (!metric) return null;
      const { model: now } = page;
      let [best, nearest] = [-1, 24 * 24];
      for (let row = 0; row < now.rows; row += 1) {
        const value = metric.values[row];
        const [dx, dy] = [plot.x(now.dispatched[row]) - x, (value === value ? plot.y(value) : plot.box.bottom - 5) - y0];
        const far = dx * dx + dy * dy;
        if (far < nearest && (value === value ? isOnAxis(value) : now.failed(row))) [best, nearest] = [row, far];
      }
      if (best < 0) return null;
      const value = metric.values[best];
      return { row: best, at: [plot.x(now.dispatched[best]), value === value ? plot.y(value) : plot.box.bottom - 5], lines: requestLines(now, best, metric) };
    },
    describe: () => (metric ? `${metric.label} of each request against the time of its dispatch.` : ''),
  });
  // A bound beyond the scale has no line; the legend states it, because all values are far from it.
  const sloLegend = () => {
    const bounds = metric ? boundsOf(page.data, metric) : [];
    if (!bounds.length) return [];
    const { domain } = y || (y = range());
    const beyond = bounds.filter(([bound]) => bound < domain[0] || bound > domain[1]);
    if (beyond.length < bounds.length) return [['purple', 'SLO', 'dash']];
    return [['purple', `SLO beyond the scale: ${beyond.map(([, text]) => text).join(', ')}`, 'dash']];
  };
  plot.explain = () => {
    const hidden = metric ? offLogAxis(metric.values.filter((value) => value === value).sort(), (y || (y = range())).log) : '';
    plot.note.textContent = [plot.sampling, hidden].filter(Boolean).join(' · ');
    plot.setLegend(plotLegend());
  };
  const plotLegend = () => [
    ...(isSelecting() ? [['blue', 'selected'], ['dim', 'not selected']] : []),
    ...(page.model.anyFailed ? [['vermillion', 'failed', 'tick']] : []),
    ...sloLegend(),
  ];
  plot.refresh = () => {
    metric = (metric && page.model.metric(metric.name)) || page.model.metrics[0];
    y = null;
    if (!changed('scatter metrics', page.model.metrics.map((entry) => [entry.name, entry.label]))) return;
    choose.querySelector('select').replaceChildren(...page.model.metrics.map((entry) =>
      el('option', { value: entry.name, selected: entry === metric }, entry.label + (entry.custom ? ' (plugin)' : ''))));
  };
  return plot;
}

// A request in a few lines.
function requestLines(model, row, metric) {
  const span = (model.span[1] - model.span[0]) / 20;
  const lines = [[`request ${model.name(row)}`], ['dispatched', instant(model.dispatched[row], span)]];
  const seen = new Set();
  for (const wanted of [metric, model.metric('ttfc'), model.metric('end_to_end_latency')]) {
    if (!wanted || seen.has(wanted.name)) continue;
    seen.add(wanted.name);
    lines.push([wanted.label, withUnit(wanted.observed[row], wanted.unit)]);
  }
  lines.push(['tokens', `${count(model.columns.prompt_tokens[row])} in with history, ${count(model.output[row])} out`]);
  if (!model.ok[row]) lines.push([`failed: ${words(model.failure(row))}`]);
  if (model.drained(row)) lines.push(['drained, not measured']);
  return lines;
}

// Each request in the first lane that is free: as many lanes as there were requests at one time.
function lanesOf(model) {
  const order = [...Array(model.rows).keys()].sort((a, b) => model.dispatched[a] - model.dispatched[b]);
  const lane = new Uint32Array(model.rows);
  const free = []; // lanes by their number: a heap would be quicker, lists this short are not worth it
  const busy = []; // [until, lane], a heap by until
  let lanes = 0;
  const push = (heap, item, before) => {
    let at = heap.push(item) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!before(heap[at], heap[up])) break;
      [heap[at], heap[up]] = [heap[up], heap[at]];
      at = up;
    }
  };
  const pop = (heap, before) => {
    const top = heap[0];
    const end = heap.pop();
    if (heap.length) {
      heap[0] = end;
      for (let at = 0; ;) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        let least = at;
        if (left < heap.length && before(heap[left], heap[least])) least = left;
        if (right < heap.length && before(heap[right], heap[least])) least = right;
        if (least === at) break;
        [heap[at], heap[least]] = [heap[least], heap[at]];
        at = least;
      }
    }
    return top;
  };
  const sooner = (a, b) => a[0] < b[0];
  const lower = (a, b) => a < b;
  for (const row of order) {
    while (busy.length && busy[0][0] <= model.dispatched[row]) push(free, pop(busy, sooner)[1], lower);
    const chosen = free.length ? pop(free, lower) : lanes++;
    lane[row] = chosen;
    push(busy, [model.completed[row], chosen], sooner);
  }
  return { lane, lanes: Math.max(1, lanes) };
}

function timelineChart(page) {
  const plot = new Plot({
    ...timeBrush, id: 'plot-timeline', title: 'Timeline of the requests', height: 260, axis: timeAxis, x: { unit: 's' },
    y: () => ({ domain: [page.lanes.lanes, 0], unit: '', ticks: 'none' }),
    draw(context) {
      const { model, lanes } = page;
      const { colors } = theme;
      const high = Math.abs(plot.y(1) - plot.y(0));
      const thick = Math.max(1, high > 5 ? high - 1.5 : high * 0.85);
      const [from, to] = plot.x.domain;
      const bar = (begin, end, y, color) => {
        if (!(end >= begin) || end < from || begin > to) return;
        context.fillStyle = color;
        context.fillRect(plot.x(begin), y, Math.max(0.6, plot.x(end) - plot.x(begin)), thick);
      };
      for (const wanted of [0, 1]) {
        context.globalAlpha = wanted ? 1 : 0.18;
        for (let row = 0; row < model.rows; row += 1) {
          if (selection.mask[row] !== wanted) continue;
          const y = plot.y(lanes.lane[row]);
          const first = model.first[row];
          const [dispatched, completed] = [model.dispatched[row], model.completed[row]];
          if (model.drained(row)) bar(dispatched, completed, y, colors[BARS.wait]);
          else if (!model.ok[row]) bar(dispatched, completed, y, colors[BARS.failed]);
          else if (first === first) {
            bar(dispatched, first, y, colors[BARS.prefill]);
            bar(first, completed, y, colors[BARS.decode]);
          } else bar(dispatched, completed, y, colors[BARS.wait]);
        }
      }
      context.globalAlpha = 1;
    },
    over(context) {
      const { model, lanes } = page;
      const high = Math.abs(plot.y(1) - plot.y(0));
      context.strokeStyle = theme.colors.ink;
      for (const [row, thick] of [[plot.reading ? plot.reading.row : -1, 1], [selection.focus, 2]]) {
        if (!(row >= 0)) continue;
        const x = plot.x(model.dispatched[row]);
        context.lineWidth = thick;
        context.strokeRect(x - 1.5, plot.y(lanes.lane[row]) - 1.5, plot.x(model.completed[row]) - x + 3, Math.max(2, high - 1) + 3);
      }
    },
    read(_, x, y) {
      const { model, lanes } = page;
      const [time, lane] = [plot.x.invert(x), Math.floor(plot.y.invert(y))];
      const near = Math.abs(plot.x.invert(x + 3) - time);
      for (let row = 0; row < model.rows; row += 1) {
        if (lanes.lane[row] === lane && model.dispatched[row] - near <= time && model.completed[row] + near >= time) {
          return { row, lines: requestLines(model, row, null) };
        }
      }
      return null;
    },
    describe: () => `Each request from dispatch to completion, in ${plural(page.lanes.lanes, 'lane', 'lanes')}.`,
  });
  plot.explain = () => plot.setLegend([['orange', 'prefill'], ['blue', 'decode'],
    ...(page.model.anyFailed ? [['vermillion', 'failed']] : []), ...(page.model.columns.drained ? [['dim', 'drained, not measured']] : [])]);
  return plot;
}
