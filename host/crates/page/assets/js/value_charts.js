// Charts over values: the chunks of single requests, distributions, gaps.

const MOST_TOKEN_LINES = 150;

// The selected requests of which chunk times are known; of many, some that are spread evenly.
function tokenRows(model) {
  const { start } = model.chunks;
  const rows = [];
  for (let row = 0; row < model.rows; row += 1) {
    if (selection.mask[row] && start[row + 1] > start[row]) rows.push(row);
  }
  const all = rows.length;
  const step = Math.max(1, all / MOST_TOKEN_LINES);
  const shown = [];
  for (let at = 0; at < all && shown.length < MOST_TOKEN_LINES; at += step) shown.push(rows[Math.floor(at)]);
  const { focus } = selection;
  if (focus >= 0 && start[focus + 1] > start[focus] && !shown.includes(focus)) shown.push(focus);
  return { shown, all };
}

function tokenChart(page) {
  const axis = new Axis();
  let since = 'dispatch';
  let rows = { shown: [], all: 0 };
  let most = 1;
  const zero = (row) => (since === 'dispatch' ? page.model.dispatched[row] : 0);
  const plot = new Plot({
    id: 'plot-tokens', title: 'Tokens of the selected requests', height: 250, axis, crosshair: true, x: { unit: 's' },
    controls: [selectBox('Time', [['dispatch', 'since dispatch'], ['run', 'time of the run']], since, (chosen) => {
      since = chosen;
      plot.refresh(true);
    })],
    y: () => ({ domain: [0, most * 1.04], unit: '' }),
    brush: 'y',
    brushed: () => (selection.tokens ? { y: selection.tokens } : null),
    onBrush: (range) => select({ tokens: range ? [Math.max(1, Math.floor(range.y[0])), Math.ceil(range.y[1])] : null }),
    draw(context) {
      const { colors } = theme;
      const { start, at, token } = page.model.chunks;
      const line = (row, color, width, alpha) => {
        context.strokeStyle = color;
        context.lineWidth = width;
        context.globalAlpha = alpha;
        context.beginPath();
        for (let index = start[row]; index < start[row + 1]; index += 1) {
          const [x, y] = [plot.x(at[index] - zero(row)), plot.y(token[index])];
          if (index === start[row]) context.moveTo(x, y);
          else {
            // A token is there when it came, not before.
            context.lineTo(x, plot.y(token[index - 1]));
            context.lineTo(x, y);
          }
        }
        context.stroke();
        context.globalAlpha = 1;
      };
      const alpha = Math.max(since === 'run' ? 0.55 : 0.2, Math.min(0.8, 20 / Math.max(1, rows.shown.length)));
      for (const row of rows.shown) if (row !== selection.focus) line(row, colors.blue, 1, alpha);
      if (selection.gap) {
        context.fillStyle = colors.vermillion;
        for (const row of rows.shown) {
          for (let index = start[row] + 1; index < start[row + 1]; index += 1) {
            const gap = at[index] - at[index - 1];
            if (gap >= selection.gap[0] && gap <= selection.gap[1]) {
              context.fillRect(plot.x(at[index] - zero(row)) - 1.5, plot.y(token[index]) - 1.5, 3, 3);
            }
          }
        }
      }
      const { focus } = selection;
      if (focus >= 0 && rows.shown.includes(focus)) line(focus, colors.ink, 2, 1);
      if (!rows.shown.length) {
        context.fillStyle = colors.muted;
        context.textAlign = 'center';
        context.fillText('No chunk times are known of these requests.', (plot.box.left + plot.box.right) / 2, plot.height / 2);
      }
    },
    read(_, x, y) {
      const { model } = page;
      const { start, at, token } = model.chunks;
      let [best, chunk, nearest] = [-1, 0, 20 * 20];
      for (const row of rows.shown) {
        for (let index = start[row]; index < start[row + 1]; index += 1) {
          const [dx, dy] = [plot.x(at[index] - zero(row)) - x, plot.y(token[index]) - y];
          const far = dx * dx + dy * dy;
          if (far < nearest) [best, chunk, nearest] = [row, index, far];
        }
      }
      if (best < 0) return null;
      const gap = chunk > start[best] ? [['gap before it', withUnit(at[chunk] - at[chunk - 1], 's')]] : [];
      return {
        row: best, at: [plot.x(at[chunk] - zero(best)), plot.y(token[chunk])],
        lines: [[`request ${model.name(best)}`], ['token', count(token[chunk])],
          [since === 'dispatch' ? 'since dispatch' : 'at', withUnit(at[chunk] - zero(best), 's')], ...gap],
      };
    },
    describe: () => `Token number against time, of ${plural(rows.shown.length, 'request', 'requests')}, at most ${count(most)}.`,
  });
  plot.refresh = (again) => {
    rows = tokenRows(page.model);
    const { start, at, token } = page.model.chunks;
    let [low, high] = [Infinity, 0];
    most = 1;
    for (const row of rows.shown) {
      low = Math.min(low, at[start[row]] - zero(row));
      high = Math.max(high, at[start[row + 1] - 1] - zero(row));
      most = Math.max(most, token[start[row + 1] - 1]);
    }
    if (again) axis.domain = axis.full;
    axis.setFull([since === 'dispatch' ? 0 : Math.min(low, high), high > 0 ? high * 1.02 : 1]);
    const { all, shown } = rows;
    plot.note.textContent = all > shown.length ? `${count(shown.length)} of ${count(all)} drawn` : all ? plural(all, 'request', 'requests') : '';
  };
  return plot;
}

// Share of values at or below each: of the whole run in grey, of the selection in colour.
function cdfChart(page, name) {
  const axis = new Axis();
  let metric = page.model.metric(name);
  let all = new Float64Array(0);
  let chosen = all;
  const line = (context, plot, sorted, color, width) => {
    // A log axis has no place for 0: the line begins at the smallest value above it.
    const begin = axis.log ? sorted.findIndex((value) => value > 0) : 0;
    if (begin < 0 || !sorted.length) return;
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(plot.x(sorted[begin]), plot.y(begin / sorted.length));
    // As many corners as there are pixels are enough.
    const step = Math.max(1, Math.floor(sorted.length / 600));
    for (let index = begin; index < sorted.length; index += step) {
      const x = plot.x(sorted[index]);
      context.lineTo(x, plot.y(index / sorted.length));
      context.lineTo(x, plot.y((index + 1) / sorted.length));
    }
    context.lineTo(plot.x(sorted[sorted.length - 1]), plot.y(1));
    context.stroke();
  };
  const plot = new Plot({
    id: `plot-cdf-${name}`, title: metric.label, height: 150, axis, crosshair: false, x: { unit: metric.unit },
    margin: { left: 40, right: 14, top: 8, bottom: 24 },
    y: () => ({ domain: [0, 1], unit: 'share' }),
    brush: 'x',
    brushed: () => (selection.values.has(name) ? { x: selection.values.get(name) } : null),
    onBrush: (range) => selectValues(name, range ? range.x : null),
    draw(context) {
      line(context, plot, all, isSelecting() ? theme.colors.faint : theme.colors.blue, isSelecting() ? 1 : 1.75);
      if (isSelecting()) line(context, plot, chosen, theme.colors.blue, 1.75);
    },
    over(context) {
      const row = selection.focus;
      if (row < 0 || metric.values[row] !== metric.values[row] || (axis.log && metric.values[row] <= 0)) return;
      const x = plot.x(metric.values[row]);
      context.strokeStyle = theme.colors.ink;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x, plot.box.top);
      context.lineTo(x, plot.box.bottom);
      context.stroke();
    },
    read(_, x, y) {
      const sorted = isSelecting() ? chosen : all;
      if (!sorted.length) return null;
      const p = Math.max(0, Math.min(1, plot.y.invert(y)));
      const value = percentile(sorted, p);
      const lines = [[`P${grouped((p * 100).toFixed(p > 0.98 ? 1 : 0))}`, withUnit(value, metric.unit)], ['samples', count(sorted.length)]];
      if (isSelecting()) lines.push(['whole run', withUnit(percentile(all, p), metric.unit)]);
      return { at: [plot.x(value), plot.y(p)], lines };
    },
    describe: () => `Cumulative distribution of ${plural(all.length, 'value', 'values')} on a ${axis.log ? 'logarithmic' : 'linear'} axis: median ${withUnit(percentile(all, 0.5), metric.unit)}, P99 ${withUnit(percentile(all, 0.99), metric.unit)}.`,
  });
  plot.refresh = (fresh) => {
    metric = page.model.metric(name);
    if (!metric) return;
    if (fresh) {
      all = metric.values.filter((value) => value === value).sort();
      const { domain, log } = domainOf(all, metric.unit);
      axis.setFull(domain, log);
    }
    chosen = isSelecting() ? selectedValues(metric) : all;
    const [p50, p99] = [0.5, 0.99].map((p) => percentile(chosen, p));
    plot.note.textContent = chosen.length
      ? `P50 ${withUnit(p50, metric.unit)} · P99 ${withUnit(p99, metric.unit)} · n ${count(chosen.length)}` : 'none selected';
    const hidden = offLogAxis(chosen, axis.log);
    if (hidden) plot.note.textContent += ` · ${hidden}`;
    plot.redraw();
  };
  return plot;
}

const GAP_BINS = 72;

function gapChart(page) {
  const axis = new Axis();
  let low = 1e-4;
  let high = 1;
  let whole = new Float64Array(GAP_BINS);
  let chosen = whole;
  let sizes = [0, 0];
  let percentiles = null;
  let shape = 'linear';
  const place = (gap) => Math.max(0, Math.min(GAP_BINS - 1, Math.floor((Math.log(gap / low) / Math.log(high / low)) * GAP_BINS)));
  const edge = (bin) => low * (high / low) ** (bin / GAP_BINS);
  const histogram = (gaps) => {
    const bins = new Float64Array(GAP_BINS);
    for (const gap of gaps) if (gap > 0) bins[place(gap)] += 1;
    return bins;
  };
  const share = (bins, bin, size) => (size ? bins[bin] / size : 0);
  const plot = new Plot({
    id: 'plot-gaps', title: 'Gaps between chunks', height: 250, axis, crosshair: false, x: { unit: 's' },
    // Stalls are rare: on a linear scale they do not show.
    controls: [selectBox('Scale of the shares', [['linear', 'shares: linear'], ['log', 'shares: logarithmic']], shape, (chosen) => {
      shape = chosen;
      plot.redraw();
    })],
    y: () => {
      let most = 0;
      let least = 1;
      for (let bin = 0; bin < GAP_BINS; bin += 1) {
        for (const value of [share(whole, bin, sizes[0]), isSelecting() ? share(chosen, bin, sizes[1]) : 0]) {
          most = Math.max(most, value);
          if (value > 0) least = Math.min(least, value);
        }
      }
      return shape === 'log' && most > 0 ? { domain: [least / 2, most * 1.5], log: true, unit: 'share' } : { domain: [0, most * 1.08 || 1], unit: 'share' };
    },
    brush: 'x',
    brushed: () => (selection.gap ? { x: selection.gap } : null),
    onBrush: (range) => select({ gap: range ? range.x : null }),
    draw(context) {
      const bars = (bins, size, color, alpha) => {
        context.fillStyle = color;
        context.globalAlpha = alpha;
        for (let bin = 0; bin < GAP_BINS; bin += 1) {
          if (!bins[bin]) continue;
          const [x0, x1] = [plot.x(edge(bin)), plot.x(edge(bin + 1))];
          const y = Math.min(plot.y(share(bins, bin, size)), plot.box.bottom - 1);
          context.fillRect(x0 + 0.5, y, Math.max(1, x1 - x0 - 1), plot.box.bottom - y);
        }
        context.globalAlpha = 1;
      };
      if (!isSelecting()) bars(whole, sizes[0], theme.colors.blue, 0.85);
      else {
        bars(chosen, sizes[1], theme.colors.blue, 0.85);
        context.strokeStyle = theme.colors.muted;
        context.lineWidth = 1.25;
        context.beginPath();
        for (let bin = 0; bin < GAP_BINS; bin += 1) {
          const y = plot.y(share(whole, bin, sizes[0]));
          context[bin ? 'lineTo' : 'moveTo'](plot.x(edge(bin)), y);
          context.lineTo(plot.x(edge(bin + 1)), y);
        }
        context.stroke();
      }
    },
    read(_, x) {
      const bin = place(plot.x.invert(x));
      if (!sizes[0] || x < plot.box.left || x > plot.box.right) return null;
      const lines = [[`${withUnit(edge(bin), 's')} to ${withUnit(edge(bin + 1), 's')}`],
        ['gaps', `${count(chosen[bin])} (${withUnit(share(chosen, bin, sizes[1]), 'share')})`]];
      if (isSelecting()) lines.push(['whole run', withUnit(share(whole, bin, sizes[0]), 'share')]);
      return { lines };
    },
    describe: () => (percentiles ? `Histogram of ${count(sizes[1])} gaps: median ${withUnit(percentiles[0], 's')}, P99 ${withUnit(percentiles[1], 's')}.` : ''),
  });
  plot.refresh = (fresh) => {
    if (fresh) {
      const { gaps } = gapsOf(true);
      const positive = gaps.subarray(gaps.findIndex((gap) => gap > 0));
      high = Math.max(1e-5, (positive[positive.length - 1] || 0) * 1.06);
      low = Math.max(1e-6, Math.min(percentile(positive, 0.001) || 1e-4, high / 10) * 0.8);
      axis.setFull([low, high], true);
      whole = histogram(gaps);
      sizes[0] = gaps.length;
    }
    const { gaps, requests } = gapsOf(false);
    chosen = histogram(gaps);
    sizes[1] = gaps.length;
    percentiles = [percentile(gaps, 0.5), percentile(gaps, 0.99)];
    plot.note.textContent = gaps.length
      ? `P50 ${withUnit(percentiles[0], 's')} · P99 ${withUnit(percentiles[1], 's')} · ${count(gaps.length)} gaps of ${plural(requests, 'request', 'requests')}` : 'no gaps';
    const hidden = offLogAxis(gaps, true);
    if (hidden) plot.note.textContent += ` · ${hidden}`;
    plot.redraw();
  };
  return plot;
}
