// The requests as a table, failures, time slices, health checks.

const PAGE_ROWS = 25;

// A request's own timeline: waiting for the first chunk, then each chunk as a tick.
function requestBar(model, row, longestTime) {
  const scale = (seconds) => Math.max(0, Math.min(180, (seconds / longestTime) * 180));
  const [begin, first] = [model.dispatched[row], model.first[row]];
  const parts = [];
  const bar = (from, to, kind) => parts.push(svg('rect', { x: scale(from - begin), y: 4, width: Math.max(1, scale(to - begin) - scale(from - begin)), height: 8, class: kind }));
  if (model.drained(row)) bar(begin, model.completed[row], 'idle');
  else if (!model.ok[row]) bar(begin, model.completed[row], 'failure');
  else if (first === first) {
    bar(begin, first, 'prefill');
    bar(first, model.completed[row], 'decode');
  } else bar(begin, model.completed[row], 'idle');
  const { start, at } = model.chunks;
  const gaps = at.slice(start[row] + 1, start[row + 1]).map((time, index) => time - at[start[row] + index]).sort();
  const usual = percentile(gaps, 0.5);
  let drawn = -9;
  for (let index = start[row]; index < start[row + 1]; index += 1) {
    const [x, before] = [scale(at[index] - begin), index > start[row] ? at[index - 1] : NaN];
    // A stall: nothing came for far longer than usual.
    if (at[index] - before > 4 * usual && x - scale(before - begin) > 1) bar(before, at[index], 'stall');
    if (x - drawn < 4) continue;
    if (drawn > 0 && gaps.length < 40) parts.push(svg('rect', { x: x - 0.4, y: 4, width: 0.8, height: 8, class: 'chunk' }));
    drawn = x;
  }
  return svg('svg', { class: 'request-bar', width: 180, height: 16, viewBox: '0 0 180 16', 'aria-hidden': 'true' }, parts);
}

class RequestTable {
  constructor(page) {
    this.page = page;
    this.sort = 'end_to_end_latency';
    this.down = true;
    this.size = PAGE_ROWS;
    this.caption = el('p', { class: 'lead-in', id: 'requests-caption' });
    this.holder = el('div', {});
    this.more = el('button', { type: 'button', id: 'more-requests', onclick: () => { this.size += 100; this.draw(); } }, 'Show 100 more');
    this.failed = el('button', { type: 'button', onclick: () => this.by('status') }, 'Failed first');
    this.slowest = el('button', { type: 'button', onclick: () => this.by('end_to_end_latency') }, 'Slowest first');
  }

  by(key) {
    this.down = this.sort === key ? !this.down : true;
    this.sort = key;
    this.draw();
  }

  columns() {
    const { model } = this.page;
    const time = (key, label, values) => ({ key, label, unit: 's', value: (row) => values[row] });
    const metric = (name) => {
      const found = model.metric(name);
      return found ? [{ key: name, label: found.short || found.label, unit: found.unit, value: (row) => found.observed[row] }] : [];
    };
    return [
      { key: 'request', label: 'Request', value: (row) => row, text: (row) => model.name(row) },
      time('dispatched', 'Dispatched', model.dispatched),
      ...metric('ttfc'), ...metric('tpot'), ...metric('end_to_end_latency'),
      { key: 'prompt', label: 'Prompt with history', unit: 'tokens', value: (row) => model.columns.prompt_tokens[row] },
      { key: 'output', label: 'Output', unit: 'tokens', value: (row) => model.output[row] },
      { key: 'status', label: 'Status', value: (row) => (model.ok[row] ? 0 : 1), text: (row) => (model.ok[row] ? model.message(row) || 'answered' : words(model.failure(row))) + (model.drained(row) ? ', drained' : '') },
      { key: 'timeline', label: 'Timeline', value: (row) => model.completed[row] - model.dispatched[row], draw: true, text: () => '' },
      ...model.metrics.filter((entry) => entry.custom).flatMap((entry) => metric(entry.name)),
    ];
  }

  // One unit and as many digits for a column as the median of all requests wants: its points stand below each other, and it reads the
  // same whatever is selected and in whichever order.
  written(columns) {
    const { model } = this.page;
    if (this.writtenFor === model) return this.writtenAs;
    this.writtenFor = model;
    this.writtenAs = new Map(columns.map((column) => {
      if (column.key === 'dispatched') return [column.key, { as: measure(column.unit, 1), digits: 3 }];
      const values = Array.from({ length: model.rows }, (_, row) => column.value(row)).filter((value) => value === value).sort((a, b) => a - b);
      const usual = percentile(values, 0.5);
      const as = column.unit === undefined ? null : measure(column.unit, usual);
      return [column.key, { as, digits: values.every(Number.isInteger) ? 0 : Math.min(3, digitsFor((usual || 1) * (as ? as.factor : 1))) }];
    }));
    return this.writtenAs;
  }

  draw() {
    const { model } = this.page;
    if (!this.holder.isConnected) {
      show('requests', this.caption, el('div', { class: 'toolbar' }, this.slowest, this.failed), this.holder, this.more);
    }
    byId('requests').hidden = model.rows === 0;
    const columns = this.columns();
    if (!columns.some((column) => column.key === this.sort)) this.sort = 'dispatched';
    const sorted = columns.find((column) => column.key === this.sort);
    const rows = [];
    for (let row = 0; row < model.rows; row += 1) if (selection.mask[row]) rows.push(row);
    const keys = rows.map((row) => sorted.value(row));
    // Rows without a value come last in either order; equal rows keep the order of the run.
    const order = rows.map((_, place) => place).sort((a, b) => {
      const [left, right] = [keys[a], keys[b]];
      const [noLeft, noRight] = [left !== left, right !== right];
      if (noLeft || noRight) return noLeft - noRight || a - b;
      return (this.down ? right - left : left - right) || a - b;
    });
    const shown = order.slice(0, this.size).map((place) => rows[place]);
    this.shown = shown;
    const written = this.written(columns);
    for (const column of columns) Object.assign(column, written.get(column.key));
    const cell = (column, row) => {
      if (column.text) return column.text(row);
      const value = column.value(row);
      return isNumber(value) ? grouped((value * column.as.factor).toFixed(column.digits)) : NONE;
    };
    const longestTime = Math.max(1e-9, ...shown.map((row) => model.completed[row] - model.dispatched[row]));
    const head = columns.map((column) => {
      const active = column.key === this.sort;
      const unit = column.as && column.as.suffix && column.as.suffix !== 'tokens' ? `, ${column.as.suffix}` : '';
      return el('th', { scope: 'col', class: column.text ? null : 'right', 'aria-sort': active ? (this.down ? 'descending' : 'ascending') : 'none' },
        el('button', { type: 'button', class: 'sort', 'data-sort': column.key, onclick: () => this.by(column.key) },
          el('span', { class: 'arrow', 'aria-hidden': 'true' }, active ? (this.down ? '↓ ' : '↑ ') : ''), column.label, unit ? el('span', { class: 'unit' }, unit) : null));
    });
    const body = shown.map((row, place) => el('tr', {
      'data-row': row, tabindex: place === 0 ? '0' : '-1', class: [row === selection.focus ? 'marked' : '', model.failed(row) ? 'failed' : '', model.drained(row) ? 'drained' : ''].join(' ').trim() || null,
      'data-name': model.name(row), 'aria-current': row === selection.focus ? 'true' : null,
      title: model.ok[row] ? null : model.message(row),
    }, columns.map((column, index) => (column.draw ? el('td', {}, requestBar(model, row, longestTime)) : el(index ? 'td' : 'th', { scope: index ? null : 'row', class: column.text ? (column.key === 'status' ? 'status' : null) : 'right' }, cell(column, row))))));
    const scrolled = this.holder.firstChild ? this.holder.firstChild.scrollLeft : 0;
    const active = this.holder.contains(document.activeElement) ? document.activeElement.dataset : {};
    this.holder.replaceChildren(el('div', { class: 'scroll' }, el('table', { class: 'requests', id: 'requests-table' },
      el('caption', { class: 'unseen' }, 'Requests'), el('thead', {}, el('tr', {}, head)),
      el('tbody', { onclick: (event) => this.click(event), onkeydown: (event) => this.key(event) }, body))));
    this.holder.firstChild.scrollLeft = scrolled;
    // The rows are new elements: restore the focus.
    const again = active.name ? `tr[data-name="${CSS.escape(active.name)}"]` : active.sort ? `[data-sort="${CSS.escape(active.sort)}"]` : null;
    const target = again ? this.holder.querySelector(again) : null;
    if (target) target.focus({ preventScroll: true });
    const part = model.total > model.rows ? ` This page holds ${count(model.rows)} of ${count(model.total)}: the slowest, the failed, and a sample of whole sessions.` : '';
    this.caption.textContent = `${count(shown.length)} of ${plural(rows.length, isSelecting() ? 'selected request' : 'request', isSelecting() ? 'selected requests' : 'requests')}.${part}`;
    this.more.hidden = shown.length >= rows.length;
  }

  click(event) {
    const row = event.target.closest('tr');
    if (row) focusOn(Number(row.dataset.row));
  }

  key(event) {
    const row = event.target.closest('tr');
    if (!row) return;
    const next = event.key === 'ArrowDown' ? row.nextElementSibling : event.key === 'ArrowUp' ? row.previousElementSibling : null;
    if (next) {
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      focusOn(Number(row.dataset.row));
    } else return;
    event.preventDefault();
  }
}

// Kinds of errors that are listed at once.
const LISTED_KINDS = 20;

function showFailures(page) {
  const { failures = [], never_sent: neverSent = [], dropped_tool_runs: dropped = [], failed_plugins: plugins = [] } = page.data;
  const { model } = page;
  const [classes, more] = first('failure-classes', LISTED_KINDS, failures, 'kinds of failures', () => showFailures(page));
  const [failed, morePlugins] = first('failed-plugins', LISTED_KINDS, plugins, 'plugins', () => showFailures(page));
  const [droppedShown, moreDropped] = first('dropped-tool-runs', LISTED_KINDS, dropped, 'kinds of tool runs', () => showFailures(page));
  show('failures',
    failures.length ? table('Failures by class', [{ label: 'Failed' }, { label: 'Count', right: true }, { label: 'First message' }, { label: 'First request' }],
      classes.map((failure) => {
        const row = failure.first_request ? model.rowOf(failure.first_request) : -1;
        return el('tr', {}, el('th', { scope: 'row' }, el('button', { type: 'button', class: 'link', title: 'Select these requests', onclick: () => select({ failure: failure.class }) }, words(failure.class))),
          el('td', { class: 'right strong' }, count(failure.count)), el('td', { class: 'message' }, failure.first_message),
          el('td', { class: 'nowrap' }, failure.first_request ? (row >= 0
            ? el('button', { type: 'button', class: 'link', onclick: () => focusOn(row) }, failure.first_request) : failure.first_request) : '',
          isNumber(failure.first_at) ? ` at ${instant(failure.first_at, 100)}` : ''));
      })) : null, more,
    plugins.length ? table('Failed agents and generators', [{ label: 'Failed plugin' }, { label: 'Failures', right: true }, { label: 'First message' }, { label: 'Sessions' }],
      failed.map((plugin) => el('tr', {}, el('th', { scope: 'row' }, plugin.plugin), el('td', { class: 'right strong' }, count(plugin.count)), el('td', { class: 'message' }, plugin.first_message),
        el('td', {}, plugin.sessions.join(', '), plugin.count > plugin.sessions.length && plugin.sessions.length ? ` and ${count(plugin.count - plugin.sessions.length)} more` : '')))) : null, morePlugins,
    neverSent.length ? table('Never sent', [{ label: 'Never sent' }, { label: 'Count', right: true }, { label: 'Why' }],
      neverSent.map((entry) => el('tr', {}, el('th', { scope: 'row' }, words(entry.reason)), el('td', { class: 'right strong' }, count(entry.count)), el('td', {}, entry.meaning)))) : null,
    dropped.length ? table('Tool runs that did not end', [{ label: 'Tool' }, { label: 'Did not end' }, { label: 'Count', right: true }, { label: 'Why' }],
      droppedShown.map((entry) => el('tr', {}, el('th', { scope: 'row' }, entry.tool), el('td', {}, words(entry.reason)), el('td', { class: 'right strong' }, count(entry.count)), el('td', {}, entry.meaning)))) : null, moreDropped);
}

// The unit of each column of a table of values, and the label of its heading.
function scaledColumns(columns, rows) {
  return columns.map((column, place) => {
    const as = measure(column.unit, Math.max(...rows.map((row) => Math.abs(row.values[place] || 0))));
    const unit = as.suffix && !['tokens', 'requests'].includes(as.suffix) ? `, ${as.suffix}` : '';
    return { as, label: column.label + unit, right: true, most: Math.max(...rows.map((row) => row.values[place] || 0), 0) };
  });
}

// A table with a row for each group, and its remark.
function groupTable(title, group) {
  const columns = scaledColumns(group.columns, group.rows);
  return [
    table(title, [{ label: group.label }, ...columns], group.rows.map((row) => el('tr', {}, el('th', { scope: 'row' }, row.value),
      row.values.map((value, place) => el('td', { class: 'right' }, bare(value, columns[place].as))))), { class: 'groups' }),
    group.remark ? el('p', { class: 'footnote' }, prose(group.remark)) : null,
  ];
}

function showSessions(page) {
  const { sessions = [] } = page.data;
  show('sessions', sessions.flatMap((part) => groupTable(part.label, part)));
}

function showCache(page) {
  const { cache } = page.data;
  show('cache', cache ? groupTable('Prompt tokens by cache state', cache) : null);
}

function showGroups(page) {
  const { groups = [] } = page.data;
  show('groups', groups.flatMap((group) => groupTable(`Groups by ${group.label}`, group)));
}

function showSlices(page) {
  const { slices } = page.data;
  if (!slices || !slices.rows.length) return show('slices');
  const columns = scaledColumns(slices.columns, slices.rows);
  const span = page.model.span[1];
  const [rows, more] = first('slices', 24, slices.rows, 'slices', () => showSlices(page));
  return show('slices', table('Time slices', [{ label: 'From', right: true }, { label: 'To', right: true },
    ...columns],
  rows.map((row) => el('tr', {},
    el('th', { scope: 'row', class: 'right' }, el('button', { type: 'button', class: 'link', title: 'Select this interval', onclick: () => select({ time: [row.from, row.to] }) }, instant(row.from, span / 5))),
    el('td', { class: 'right' }, instant(row.to, span / 5)),
    row.values.map((value, place) => el('td', { class: 'right heat', style: isNumber(value) && columns[place].most > 0 ? `--heat:${Math.round((value / columns[place].most) * 100)}%` : null }, bare(value, columns[place].as))))), { class: 'slices' }), more);
}

const OUTCOMES = { passed: ['✓', 'Passed'], warned: ['▲', 'Warning'], failed: ['✕', 'Failed'], skipped: ['–', 'Not applicable'] };

function showHealth(page) {
  const { health = [] } = page.data;
  show('health', health.length ? el('ul', { class: 'checks' }, health.map((check) => {
    const [sign, word] = OUTCOMES[check.outcome];
    const line = [el('span', { class: `outcome ${check.outcome}` }, el('span', { 'aria-hidden': 'true' }, sign), ` ${word}`), el('b', {}, check.name), el('span', { class: 'check-summary' }, prose(check.summary))];
    return el('li', {}, check.details && check.details.length
      ? el('details', {}, el('summary', {}, line), el('ul', {}, check.details.map((detail) => el('li', {}, prose(detail))))) : el('div', { class: 'check-line' }, line));
  })) : null);
}
