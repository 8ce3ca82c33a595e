// The page: builds all parts once, and redraws them on changes of data, selection, theme and size.

const KEYS = [
  ['?', 'Show these keys'], ['Esc', 'Clear the selection'], ['t', 'Light or dark'], ['g', 'To the charts'], ['r', 'To the requests'],
  ['Drag', 'Brush a range; drag its inside to move it, its edges to change it'], ['Shift + drag', 'Move the view'],
  ['Ctrl + wheel', 'Zoom'], ['Double click', 'Zoom to the brush, or back'], ['Click', 'Mark a request everywhere'],
  ['← → ↑ ↓', 'In a chart: move the cursor. In a session: step along its edges and through its requests. In the table: from row to row'],
  ['Shift + ← →', 'In a chart: brush'], ['+  −  0', 'In a chart: zoom in, out, back'], ['[  ]', 'In a chart: move the view'], ['z', 'In a chart: zoom to the brush'],
  ['Enter', 'Mark the request under the cursor'], [',  .', 'In a session: the one before, the next'],
];

const EMPTY = { run: { name: 'Waiting for the run', state: 'running' }, requests: { total: 0, shown: 0, texts: [], session: [], node: [], intended: [], dispatched: [], completed: [], prompt_tokens: [], output_tokens: [], message: [], custom: [], sessions: [], never_sent: [] } };

const page = {
  data: null, model: null, curves: null, lanes: null, sparks: {}, plots: [], cdfs: [], cdfNames: null, requests: null, session: null,

  build() {
    this.concurrency = concurrencyChart(this);
    this.throughput = throughputChart(this);
    this.scatter = scatterChart(this);
    this.timeline = timelineChart(this);
    this.tokens = tokenChart(this);
    this.gaps = gapChart(this);
    show('charts', [this.concurrency, this.throughput, this.scatter, this.timeline].map((plot) => plot.node),
      el('div', { class: 'pair' }, this.tokens.node, this.gaps.node));
    byId('charts-hint').replaceChildren('Drag to brush, click to mark a request, ', el('kbd', {}, 'Ctrl'), ' + wheel to zoom, ', el('kbd', {}, '?'), ' for all keys.');
    this.session = new SessionView(this);
    this.requests = new RequestTable(this);
    selection.listeners.push(() => this.selected());
  },

  update(data) {
    this.data = data;
    const before = selection.model && selection.focus >= 0 ? selection.model.name(selection.focus) : null;
    this.model = buildModel(data);
    this.curves = loadCurves(this.model);
    this.lanes = lanesOf(this.model);
    this.sparks = {};
    selection.model = this.model;
    selection.focus = before === null ? -1 : this.model.rowOf(before);
    computeMask();
    timeAxis.setFull([this.model.span[0], this.model.span[1] + (this.model.span[1] - this.model.span[0]) * 0.005]);
    byId('charts').hidden = this.model.rows === 0 && !data.curves;
    this.concurrency.note.textContent = this.curves.whole ? '' : `of the ${count(this.model.rows)} requests on this page`;
    this.scatter.sampling = this.model.total > this.model.rows ? `${count(this.model.rows)} of ${count(this.model.total)} shown` : '';
    this.timeline.note.textContent = this.scatter.sampling;
    this.scatter.refresh();
    this.distributions();
    this.gaps.node.hidden = this.model.chunks.at.length === 0;
    this.tokens.node.hidden = this.gaps.node.hidden;
    this.gaps.refresh(true);
    showHead(this);
    const { run, certificate, metrics, slos, failures, never_sent: neverSent, dropped_tool_runs: dropped, failed_plugins: failedPlugins, sessions, cache, groups, slices, health, configuration, plugins, plugin_use: used, machine, versions } = data;
    if (changed('verdict', run.state, certificate, slos, health, metrics && metrics.map((metric) => metric.unit))) showVerdict(this);
    if (changed('slos', slos)) showSlos(this);
    if (changed('failures', failures, neverSent, dropped, failedPlugins)) showFailures(this);
    if (changed('sessions', sessions)) showSessions(this);
    if (changed('cache', cache)) showCache(this);
    if (changed('groups', groups)) showGroups(this);
    if (changed('slices', slices)) showSlices(this);
    if (changed('health', health)) showHealth(this);
    if (changed('setup', configuration, plugins, used, machine, versions)) showSetup(this);
    this.session.refresh();
    this.selected();
    contents();
  },

  // Small charts, one for each metric with values per request.
  distributions() {
    const names = this.model.metrics.filter((metric) => metric.values.some((value) => value === value)).map((metric) => metric.name).filter((name) => name !== 'ttfc_from_intended' && name !== 'e2e_from_intended');
    if (names.join() !== this.cdfNames) {
      this.cdfNames = names.join();
      PLOTS.splice(0, PLOTS.length, ...PLOTS.filter((plot) => !this.cdfs.includes(plot)));
      this.cdfs = names.map((name) => cdfChart(this, name));
      show('distributions', this.cdfs.length ? el('div', { class: 'grid' }, this.cdfs.map((plot) => plot.node)) : null);
    }
    this.cdfs.forEach((plot) => plot.refresh(true));
  },

  selected() {
    showSelection();
    showKeyMetrics(this);
    this.scatter.explain();
    this.timeline.explain();
    this.cdfs.forEach((plot) => plot.refresh(false));
    this.tokens.refresh(false);
    this.gaps.refresh(false);
    PLOTS.forEach((plot) => plot.redraw());
    this.requests.draw();
    if (this.shownFocus !== selection.focus) {
      this.shownFocus = selection.focus;
      this.session.showFocus();
    }
  },
};

function contents() {
  byId('contents').querySelector('ol').replaceChildren(...[...document.querySelectorAll('main > section')]
    .filter((section) => !section.hidden)
    .map((section) => el('li', {}, el('a', { href: `#${section.id}` }, section.dataset.title))));
  markSection();
}

// Marks the visible section in the table of contents.
const markSection = eachFrame(() => {
  const links = [...byId('contents').querySelectorAll('a')];
  let current = links[0];
  for (const link of links) {
    if (byId(link.hash.slice(1)).getBoundingClientRect().top < window.innerHeight * 0.35) current = link;
  }
  if (window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 4) current = links[links.length - 1];
  for (const link of links) {
    if (link === current) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
});

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function applyTheme() {
  readTheme();
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  PLOTS.forEach((plot) => plot.redraw());
}

function toggleTheme() {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  remember('veeksha-theme', theme);
  applyTheme();
}

function showKeys() {
  const dialog = byId('keys');
  if (dialog.open) return;
  dialog.replaceChildren(el('h2', { id: 'keys-title' }, 'Keys'),
    el('dl', {}, KEYS.flatMap(([key, what]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, what)])),
    el('form', { method: 'dialog' }, el('button', {}, 'Close')));
  dialog.showModal();
}

function jump(id) {
  const section = byId(id);
  section.scrollIntoView();
  const target = section.querySelector('[tabindex="0"], button');
  if (target) target.focus({ preventScroll: true });
}

function listen() {
  byId('theme').addEventListener('click', toggleTheme);
  byId('keys-button').addEventListener('click', showKeys);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === 'Escape' && !byId('keys').open) {
      selection.focus = -1;
      clearSelection();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId('keys').open) return;
    const work = { '?': showKeys, t: toggleTheme, g: () => jump('charts'), r: () => jump('requests') }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  });
  document.addEventListener('scroll', markSection, { passive: true });
  // Paper is white.
  let dressed = null;
  window.addEventListener('beforeprint', () => {
    dressed = document.documentElement.dataset.theme || '';
    document.documentElement.dataset.theme = 'light';
    readTheme();
    PLOTS.forEach((plot) => plot.toPaper());
  });
  window.addEventListener('afterprint', () => {
    PLOTS.forEach((plot) => plot.fromPaper());
    if (dressed) document.documentElement.dataset.theme = dressed;
    else delete document.documentElement.dataset.theme;
    applyTheme();
  });
}

function start() {
  const theme = remembered('veeksha-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  readTheme();
  page.build();
  listen();
  const data = JSON.parse(byId('data').textContent);
  page.update(data || EMPTY);
  applyTheme();
  if (document.documentElement.dataset.mode === 'live') startLive(page, data);
  document.documentElement.dataset.ready = 'yes';
}

start();
