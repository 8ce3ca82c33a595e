// What the reader brushed: one selection for the whole page. Every chart may narrow it, and every chart and table shows it.

const selection = {
  model: null,
  time: null, // [from, to] in seconds of the run
  rule: 'dispatched', // or 'in flight': how a request belongs to a range of time
  values: new Map(), // metric name -> [from, to]
  gap: null, // [from, to] in seconds: requests with such a gap
  tokens: null, // [from, to]: gaps before these tokens, and requests that have them
  session: null,
  failure: null,
  focus: -1, // the row that was clicked
  gaps: null,
  mask: new Uint8Array(0),
  count: 0,
  listeners: [],
};

function isSelecting() {
  return Boolean(selection.time || selection.values.size || selection.gap || selection.tokens
    || selection.session !== null || selection.failure !== null);
}

function computeMask() {
  const { model, time, rule, values, gap, tokens, session, failure } = selection;
  const mask = new Uint8Array(model.rows).fill(1);
  const { start, at, token } = model.chunks;
  const ranges = [...values].map(([name, range]) => [model.metric(name), range]).filter(([metric]) => metric);
  let chosen = 0;
  for (let row = 0; row < model.rows; row += 1) {
    let keep = session === null || model.columns.session[row] === session;
    if (keep && failure !== null) keep = model.failure(row) === failure;
    if (keep && time) {
      const from = model.dispatched[row];
      keep = rule === 'dispatched'
        ? from >= time[0] && from <= time[1]
        : from <= time[1] && model.completed[row] >= time[0];
    }
    for (let place = 0; keep && place < ranges.length; place += 1) {
      const [metric, range] = ranges[place];
      keep = metric.values[row] >= range[0] && metric.values[row] <= range[1];
    }
    if (keep && tokens) keep = start[row + 1] > start[row] && token[start[row + 1] - 1] >= tokens[0];
    if (keep && gap) {
      keep = false;
      for (let index = start[row] + 1; model.counts(row) && index < start[row + 1] && !keep; index += 1) {
        const wide = at[index] - at[index - 1];
        keep = wide >= gap[0] && wide <= gap[1] && (!tokens || (token[index] >= tokens[0] && token[index] <= tokens[1]));
      }
    }
    if (!keep) mask[row] = 0;
    else chosen += 1;
  }
  selection.mask = mask;
  selection.gaps = null;
  selection.count = chosen;
}

const tellSelection = eachFrame(() => {
  computeMask();
  selection.listeners.forEach((listener) => listener());
});

function select(changes) {
  Object.assign(selection, changes);
  tellSelection();
}

function selectValues(metric, range) {
  if (range) selection.values.set(metric, range);
  else selection.values.delete(metric);
  tellSelection();
}

function clearSelection() {
  selection.values.clear();
  select({ time: null, gap: null, tokens: null, session: null, failure: null });
}

// A request that was clicked: it is marked everywhere, and the others stay.
function focusOn(row) {
  selection.focus = row;
  tellSelection();
}

// Values of the selected requests that have the metric, ascending.
function selectedValues(metric) {
  const { mask } = selection;
  const kept = new Float64Array(metric.values.length);
  let size = 0;
  for (let row = 0; row < mask.length; row += 1) {
    const value = metric.values[row];
    if (mask[row] && value === value) kept[size++] = value;
  }
  return kept.subarray(0, size).sort();
}

// Gaps between chunks of the selected requests (all: of all), ascending, in the answers that count. They are many, so they are kept until the selection changes.
function gapsOf(all) {
  const { model, mask, tokens } = selection;
  if (all || !isSelecting()) {
    model.gaps = model.gaps || collectGaps(model, null, null);
    return model.gaps;
  }
  selection.gaps = selection.gaps || collectGaps(model, mask, tokens);
  return selection.gaps;
}

function collectGaps(model, mask, tokens) {
  const { start, at, token, thinned } = model.chunks;
  const gaps = new Float64Array(at.length);
  let size = 0;
  let requests = 0;
  for (let row = 0; row < model.rows; row += 1) {
    if ((mask && !mask[row]) || thinned[row] || !model.counts(row) || start[row + 1] === start[row]) continue;
    requests += 1;
    for (let index = start[row] + 1; index < start[row + 1]; index += 1) {
      if (tokens && !(token[index] >= tokens[0] && token[index] <= tokens[1])) continue;
      gaps[size++] = at[index] - at[index - 1];
    }
  }
  return { gaps: gaps.subarray(0, size).sort(), requests };
}

// The selection as text, with a button to remove each part.
function showSelection() {
  const bar = byId('selection');
  const { model } = selection;
  const focused = selection.focus >= 0 && selection.focus < model.rows;
  bar.hidden = !isSelecting() && !focused;
  document.body.classList.toggle('selecting', !bar.hidden);
  if (bar.hidden) {
    bar.replaceChildren();
    return;
  }
  const parts = [];
  const part = (text, undo) => parts.push(el('span', { class: 'part' }, text,
    el('button', { type: 'button', class: 'undo', 'aria-label': `Remove: ${text}`, onclick: undo }, '×')));
  const span = model.span[1] - model.span[0];
  if (selection.time) {
    const [from, to] = selection.time;
    part(`${instant(from, Math.min(span, (to - from) * 20))} to ${instant(to, Math.min(span, (to - from) * 20))}`, () => select({ time: null }));
    parts.push(el('label', { class: 'rule' }, el('span', { class: 'unseen' }, 'A request belongs to the range if it was'),
      el('select', { onchange: (event) => select({ rule: event.target.value }) },
        ['dispatched', 'in flight'].map((rule) =>
          el('option', { value: rule, selected: rule === selection.rule }, rule === 'dispatched' ? 'dispatched then' : 'in flight then')))));
  }
  for (const [name, [from, to]] of selection.values) {
    const metric = model.metric(name);
    if (metric) part(`${metric.label} ${withUnit(from, metric.unit, to)} to ${withUnit(to, metric.unit)}`, () => selectValues(name, null));
  }
  if (selection.gap) part(`a gap of ${withUnit(selection.gap[0], 's')} to ${withUnit(selection.gap[1], 's')}`, () => select({ gap: null }));
  if (selection.tokens) part(`tokens ${count(selection.tokens[0])} to ${count(selection.tokens[1])}`, () => select({ tokens: null }));
  if (selection.session !== null) part(`session ${selection.session}`, () => select({ session: null }));
  if (selection.failure !== null) part(`failed: ${words(selection.failure)}`, () => select({ failure: null }));
  if (focused) part(`request ${model.name(selection.focus)}`, () => focusOn(-1));
  const held = bar.contains(document.activeElement) ? (document.activeElement.matches('select') ? 'select' : '.clear') : null;
  bar.replaceChildren(
    el('strong', { id: 'selection-count' }, isSelecting()
      ? `${count(selection.count)} of ${plural(model.rows, 'request', 'requests')}` : 'Marked'),
    el('span', { class: 'parts' }, parts),
    el('button', { type: 'button', class: 'clear', onclick: () => { selection.focus = -1; clearSelection(); } }, 'Clear ', el('kbd', {}, 'Esc')));
  if (held && bar.querySelector(held)) bar.querySelector(held).focus();
}
