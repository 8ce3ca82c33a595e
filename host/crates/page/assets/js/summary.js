// The top of the page: the verdict with its reasons, key metrics, SLOs.

const VERDICTS = {
  valid: ['VALID', '●'],
  degraded: ['DEGRADED', '▲'],
  invalid: ['INVALID', '■'],
};

const SEVERITY = { invalid: 0, degraded: 1, valid: 2 };

// The scope of the verdict: some metrics, or the run as a whole. The verdict is that of the most severe finding.
function verdictScope({ verdict, coverage, findings = [], bounds = [] }, label) {
  if (verdict === 'valid') return `The contribution of the client to the ${coverage ? 'certified ' : ''}metrics is small.`;
  const worst = findings.filter((finding) => finding.verdict === verdict);
  const metrics = [...new Set(worst.map((finding) => finding.metric).filter(Boolean))];
  const whole = worst.filter((finding) => !finding.metric).length;
  const names = metrics.length ? `${count(metrics.length)} of ${plural(Math.max(bounds.length, metrics.length), 'metric', 'metrics')}: ${metrics.map(label).join(', ')}` : '';
  const word = VERDICTS[verdict][0];
  if (!whole && metrics.length) return `${word} applies to ${names}. The verdict of a run is that of its most severe finding.`;
  return `${word} applies to the run as a whole${names ? `, and to ${names}` : ''}.`;
}

// The most severe verdict of the findings about a metric.
function verdictOf(certificate, metric) {
  const found = ((certificate && certificate.findings) || []).filter((finding) => finding.metric === metric).map((finding) => finding.verdict);
  return found.sort((a, b) => SEVERITY[a] - SEVERITY[b])[0] || 'valid';
}

function verdictSign(verdict) {
  const [word, sign] = VERDICTS[verdict];
  return verdict === 'valid' ? null : el('span', { class: `metric-verdict ${verdict}`, role: 'img', 'aria-label': word, title: word }, sign);
}

const STATES = { running: 'running', ended: 'ended', interrupted: 'interrupted', cut: 'record cut short' };

function showHead(page) {
  const { run } = page.data;
  document.title = `${run.name || 'Run'} · veeksha-host`;
  byId('title').textContent = run.name || 'Run';
  byId('summary').textContent = run.summary || '';
  byId('summary').hidden = !run.summary;
  const facts = [];
  if (isNumber(run.started_unix)) {
    facts.push({ name: 'Started', value: new Date(run.started_unix * 1000).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' });
  }
  if (isNumber(run.elapsed)) facts.push({ name: run.state === 'running' ? 'Running for' : 'Took', value: withUnit(run.elapsed, 's') });
  if (run.state === 'interrupted' || run.state === 'cut') facts.push({ name: 'End', value: STATES[run.state] });
  byId('run-facts').replaceChildren(...facts.concat(run.facts || []).map(({ name, value }) =>
    el('div', {}, el('dt', {}, name), el('dd', { title: value.length > 40 ? value : null }, value))));
  byId('remarks').replaceChildren(...(run.remarks || []).map((remark) => el('p', { class: 'remark' }, prose(remark))));
}

function findingItem(finding) {
  const [word, sign] = VERDICTS[finding.verdict];
  const remark = finding.verdict === 'valid';
  return el('li', { class: `finding ${remark ? 'remark-only' : finding.verdict}` },
    el('span', { class: 'sign', role: 'img', 'aria-label': remark ? 'Remark' : word }, remark ? '·' : sign),
    el('p', {}, prose(finding.what)));
}

// Findings with the same remedy are one group, with the remedy below them; the most severe come first.
function findingList(findings) {
  const groups = [];
  for (const finding of findings) {
    const known = finding.remedy && groups.find(([first]) => first.remedy === finding.remedy);
    if (known) known.push(finding);
    else groups.push([finding]);
  }
  return el('ul', { class: 'findings' }, groups.map((group) => el('li', {}, el('ul', { class: 'findings' }, group.map(findingItem)),
    group[0].remedy ? el('p', { class: 'remedy' }, el('span', { class: 'fix' }, group.length > 1 ? `fix for these ${count(group.length)}:` : 'fix:'), ' ', prose(group[0].remedy)) : null)));
}

// Other outcomes of the run: SLOs and health checks.
function otherOutcomes({ slos = [], health = [] }) {
  const link = (target, kind, text) => el('a', { href: `#${target}`, class: `also ${kind}` }, text);
  const missed = slos.filter((slo) => slo.met === false).length;
  const met = slos.filter((slo) => slo.met === true).length;
  const failed = health.filter((check) => check.outcome === 'failed').length;
  const passed = health.filter((check) => check.outcome === 'passed').length;
  return [
    missed ? link('slos', 'bad', `✕ ${count(missed)} of ${plural(slos.length, 'SLO', 'SLOs')} missed`)
      : met && met === slos.length ? link('slos', 'good', `✓ ${plural(met, 'SLO', 'SLOs')} met`) : null,
    failed ? link('health', 'bad', `✕ ${plural(failed, 'health check', 'health checks')} failed`)
      : passed ? link('health', 'good', `✓ ${plural(passed, 'health check', 'health checks')} passed`) : null,
  ].filter(Boolean);
}

function showVerdict(page) {
  const { certificate, metrics = [], run } = page.data;
  if (!certificate) {
    show('verdict', el('div', { class: 'verdict none' }, el('p', { class: 'verdict-word' }, run.state === 'running' ? 'Running' : 'No certificate'),
      el('p', { class: 'verdict-text' }, run.state === 'running'
        ? 'The verdict is known when the run has ended. Results so far are provisional.' : 'This run has no certificate: the accuracy of its results is unknown.')));
    return;
  }
  const [word, sign] = VERDICTS[certificate.verdict];
  const label = (name) => (metrics.find((metric) => metric.name === name) || { label: name }).label;
  // Metrics without problems are in the table of errors.
  const findings = (certificate.findings || []).filter((finding) => !finding.metric || finding.verdict !== 'valid').sort((a, b) => SEVERITY[a.verdict] - SEVERITY[b.verdict]);
  const unit = (name) => (metrics.find((metric) => metric.name === name) || { unit: 's' }).unit;
  const bounds = certificate.bounds || [];
  const basis = certificate.basis ? `judged by ${certificate.basis}` : '';
  show('verdict', el('div', { class: `verdict ${certificate.verdict}` },
    el('div', { class: 'verdict-head' },
      el('p', { class: 'verdict-word' }, el('span', { class: 'sign', 'aria-hidden': 'true' }, sign), `Certificate: ${word}${certificate.coverage ? ` (${certificate.coverage})` : ''}`),
      el('p', { class: 'verdict-text' }, verdictScope(certificate, label))),
    el('p', { class: 'other-outcomes' }, otherOutcomes(page.data)),
    findings.length ? findingList(findings) : null,
    bounds.length ? el('details', { class: 'bounds', open: certificate.verdict !== 'valid' }, el('summary', {}, 'Error of each metric', basis ? `, ${basis}` : ''),
      table('Error of each metric', [{ label: 'Metric' }, { label: 'Samples', right: true }, { label: 'Mean error', right: true, title: 'Mean absolute error of a sample: it decides' },
        { label: 'P99 error', right: true, title: '99th percentile of the absolute errors: the ± next to the values' }, { label: 'Mean error / P50', right: true }, { label: 'Source' }],
      bounds.map((bound) => el('tr', {}, el('th', { scope: 'row' }, label(bound.metric), verdictSign(verdictOf(certificate, bound.metric))), el('td', { class: 'right' }, count(bound.count)),
        el('td', { class: 'right' }, withUnit(bound.mean_error, unit(bound.metric))), el('td', { class: 'right' }, withUnit(bound.p99_error, unit(bound.metric))),
        el('td', { class: 'right' }, isNumber(bound.relative) && bound.relative < 1e-4 ? `<${THIN}0.01${THIN}%` : withUnit(bound.relative, 'share')), el('td', {}, bound.source))))) : basis ? el('p', { class: 'basis' }, `${basis[0].toUpperCase()}${basis.slice(1)}.`) : null));
}

// A small histogram of a metric's values.
function sparkline(values, unit) {
  const sorted = values.filter((value) => value === value).sort();
  if (sorted.length < 5 || sorted[sorted.length - 1] <= 0) return null;
  // The last half per cent would squeeze the rest.
  const { domain, log } = domainOf(sorted.subarray(0, Math.ceil(sorted.length * 0.995)), unit);
  const scale = (log ? logScale : linearScale)([log ? domain[0] : sorted[0], domain[1]], [0, 27.999]);
  const bins = new Array(28).fill(0);
  for (const value of sorted) if (!log || value > 0) bins[Math.max(0, Math.min(27, Math.floor(scale(value))))] += 1;
  const most = Math.max(...bins);
  return svg('svg', { class: 'spark', width: 84, height: 18, viewBox: '0 0 84 18', 'aria-hidden': 'true' },
    bins.map((number, place) => (number ? svg('rect', { x: place * 3, y: 18 - Math.max(1, (number / most) * 17), width: 2.4, height: Math.max(1, (number / most) * 17) }) : null)));
}

function showKeyMetrics(page) {
  const { key_metrics: keyMetrics = [], metrics = [], certificate } = page.data;
  const bound = (name) => ((certificate && certificate.bounds) || []).find((entry) => entry.metric === name);
  const head = keyMetrics.length ? el('dl', { class: 'headline' }, keyMetrics.map((metric) => {
    const as = measure(metric.unit, metric.value);
    return el('div', {}, el('dt', { title: metric.name }, metric.label),
      el('dd', { class: 'number' }, bare(metric.value, as), as.suffix ? el('span', { class: 'unit' }, as.suffix) : null,
        isNumber(metric.error) ? el('span', { class: 'error' }, `±${THIN}${withUnit(metric.error, metric.unit)}`) : null),
      isNumber(metric.count) ? el('dd', { class: 'rests' }, `n = ${count(metric.count)}${metric.count_of ? ` ${metric.count_of}` : ''}`) : null,
      metric.detail ? el('dd', { class: 'rests' }, metric.detail) : null);
  })) : null;
  const [shown, more] = first('metrics', 8, metrics.filter((metric) => metric.summary), 'metrics', () => showKeyMetrics(page));
  const selecting = isSelecting();
  const bounded = Boolean(certificate && certificate.bounds && certificate.bounds.length);
  const rows = shown.map((metric) => {
    const { summary } = metric;
    const as = measure(metric.unit, summary.p50 || summary.p99 || summary.max);
    // A plugin's unit may be a phrase: it is below the name, where there is room.
    const long = as.suffix.length > 10;
    const error = bound(metric.name);
    const own = page.model.metric(metric.name);
    const values = own ? own.values : metric.name === 'tbc' ? gapsOf(true).gaps : null;
    let picked = [NONE, NONE, NONE];
    if (selecting && values) {
      const sorted = own ? selectedValues(own) : gapsOf(false).gaps;
      picked = [count(sorted.length), bare(percentile(sorted, 0.5), as), bare(percentile(sorted, 0.99), as)];
    }
    const thin = summary.count < 100;
    return el('tr', { 'data-metric': metric.name },
      el('th', { scope: 'row', title: metric.definition },
        el('span', { class: 'metric-label' }, metric.label), verdictSign(verdictOf(certificate, metric.name)), metric.label === metric.name ? null : el('code', {}, metric.name), metric.plugin ? el('span', { class: 'tag', title: `measured by ${metric.plugin}` }, 'plugin') : null,
        long ? el('span', { class: 'long-unit' }, as.suffix) : null, metric.doubt ? el('span', { class: 'long-unit' }, metric.doubt) : null),
      el('td', { class: 'spark-cell' }, values ? (page.sparks[metric.name] = page.sparks[metric.name] || sparkline(values, metric.unit)) : null),
      el('td', { class: 'unit-cell' }, long ? '' : as.suffix),
      ['mean', 'p50', 'p90', 'p95'].map((key) => el('td', { class: `right ${key}` }, bare(summary[key], as))),
      el('td', { class: 'right', title: thin ? 'Fewer than 100 samples: little more than the largest one' : null }, bare(summary.p99, as), thin ? el('span', { class: 'thin' }, '*') : null),
      el('td', { class: 'right' }, bare(summary.max, as)),
      bounded ? el('td', { class: 'right error-cell' }, error ? `±${THIN}${withUnit(error.p99_error, metric.unit)}` : '') : null,
      el('td', { class: 'right' }, count(summary.count)),
      selecting ? picked.map((text, place) => el('td', { class: place ? 'right picked' : 'right picked picked-first' }, text)) : null);
  });
  const columns = [{ label: 'Metric' }, { label: '' }, { label: '' }, { label: 'Mean', right: true }, { label: 'P50', right: true }, { label: 'P90', right: true },
    { label: 'P95', right: true }, { label: 'P99', right: true }, { label: 'Max', right: true },
    ...(bounded ? [{ label: 'Error', right: true, title: 'Error of the client in a sample: P99 of the absolute error' }] : []), { label: 'n', right: true, title: 'Samples' }];
  if (selecting) columns.push({ label: 'Selected n', right: true }, { label: 'P50', right: true }, { label: 'P99', right: true });
  const thin = shown.some((metric) => metric.summary.count < 100);
  show('key-metrics', head, rows.length ? table('Metrics', columns, rows, { class: 'metrics', id: 'metrics-table' }) : null, more,
    thin ? el('p', { class: 'footnote' }, '* A P99 of fewer than 100 samples is little more than the largest one.') : null);
}

// The observed value relative to the bound, which is the mark in the middle.
function slack(slo) {
  if (!isNumber(slo.observed) || !isNumber(slo.bound) || slo.bound <= 0 || slo.observed < 0) return null;
  const share = Math.max(0, Math.min(1, slo.observed / slo.bound / 2));
  return svg('svg', { class: `slack ${slo.met ? 'met' : 'missed'}`, width: 96, height: 12, viewBox: '0 0 96 12', 'aria-hidden': 'true' },
    svg('rect', { x: 0, y: 5, width: 96, height: 2, class: 'rail' }), svg('rect', { x: 0, y: 4, width: share * 96, height: 4, class: 'bar' }),
    svg('rect', { x: 47.5, y: 0, width: 1, height: 12, class: 'mark' }));
}

function showSlos(page) {
  const { slos = [] } = page.data;
  if (!slos.length) return show('slos');
  const missed = slos.filter((slo) => slo.met === false).length;
  const open = slos.filter((slo) => slo.met === null || slo.met === undefined).length;
  const span = page.model.span[1];
  const windows = slos.some((slo) => slo.worst_window);
  const word = (met) => (met === true ? ['met', '✓', 'Met'] : met === false ? ['missed', '✕', 'Missed'] : ['open', '–', 'Open']);
  return show('slos', el('p', { class: 'lead-in' }, missed ? `${count(missed)} of ${plural(slos.length, 'SLO', 'SLOs')} missed.`
    : open ? `${count(open)} of ${plural(slos.length, 'SLO', 'SLOs')} open.` : slos.length === 1 ? 'The SLO is met.' : `All ${count(slos.length)} SLOs are met.`),
  table('SLOs', [{ label: '' }, { label: 'SLO' }, { label: 'Observed', right: true }, { label: '' }, { label: 'Bound', right: true }, { label: 'Samples', right: true }, ...(windows ? [{ label: 'Worst window' }] : [])],
    slos.map((slo) => {
      const [kind, sign, text] = word(slo.met);
      const worst = slo.worst_window;
      // If the bound was written in percent, all values are shown in percent.
      const unit = (slo.unit === '1' || !slo.unit) && /%\s*$/.test(slo.expression) ? 'share' : slo.unit;
      return el('tr', { class: kind }, el('td', { class: `outcome ${kind}` }, el('span', { 'aria-hidden': 'true' }, sign), ` ${text}`),
        el('th', { scope: 'row' }, slo.name ? el('span', { class: 'slo-name' }, slo.name) : null, el('code', {}, slo.expression),
          slo.plugin ? el('span', { class: 'tag', title: `judged by ${slo.plugin}` }, 'plugin') : null, slo.detail ? el('p', { class: 'footnote' }, slo.detail) : null),
        el('td', { class: 'right strong' }, withUnit(slo.observed, unit)), el('td', {}, slack(slo)),
        el('td', { class: 'right' }, slo.comparison ? `${slo.comparison.replace('<=', '≤').replace('>=', '≥')} ` : '', withUnit(slo.bound, unit)),
        el('td', { class: 'right', title: worst ? 'Samples of the worst window' : null }, isNumber(slo.samples) ? count(slo.samples) : ''),
        windows ? el('td', { class: 'nowrap' }, worst ? [el('button', { type: 'button', class: 'link', title: 'Select this interval', onclick: () => select({ time: [worst.from, worst.to] }) },
          `${instant(worst.from, span)} to ${instant(worst.to, span)}`), ` of ${plural(worst.of, 'window', 'windows')}`] : '') : null);
    })));
}
