// One session as a graph: its requests and tool runs by time, what they waited for, and their think time.

// A lane is as high as there is room, down to what can still be hit.
const LANE = 34;
const THINNEST = 9;
const HIGHEST = 600;

function sessionOrder(model) {
  return [...model.bySession.keys()].sort((a, b) => a - b);
}

// The session that is shown first: the one with the most requests.
function firstSession(model) {
  let best = null;
  for (const [session, rows] of model.bySession) {
    if (best === null || rows.length > model.bySession.get(best).length) best = session;
  }
  return best;
}

// Rows of the graph: a node continues the lane of the parent that it continues, if no sibling took it; other branches get separate lanes.
function graphLanes(nodes) {
  const until = [];
  for (const node of nodes) {
    const parents = node.parents.map((parent) => nodes.byNode.get(parent)).filter(Boolean);
    const main = parents.find((parent) => parent.node === node.history) || parents[0];
    // A node can begin while its parent streams; the tolerance is the rounding of times.
    const follows = main && until[main.lane] <= main.end && main.end <= node.begin + 1e-5;
    let lane = follows ? main.lane : -1;
    if (lane < 0) lane = until.findIndex((busy, place) => busy <= node.begin && (!main || place > main.lane));
    if (lane < 0) lane = until.length;
    node.lane = lane;
    until[lane] = node.end;
  }
  return Math.max(1, until.length);
}

// The events that an edge waits for, by their number.
const EVENTS = ['dispatch', 'first chunk', 'end'];

// The instant of the awaited event of a parent.
function eventOf(parent, edge) {
  if (edge.event === 0) return parent.tool ? parent.first : parent.begin;
  if (parent.tool) return parent.end;
  return edge.event === 1 && parent.first === parent.first ? parent.first : parent.end;
}

function edgesOf(model, row) {
  const { parents, parent_triggers: triggers, parent_delays: delays } = model.columns;
  return (parents ? parents[row] : []).map((node, place) => ({
    node,
    event: triggers && triggers[row].length ? triggers[row][place] : 2,
    delay: delays && delays[row].length ? delays[row][place] / 1e6 : 0,
  }));
}

function edgeText({ node, event, delay }) {
  const after = delay > 0 ? ` + ${withUnit(delay, 's')}` : '';
  return event === 2 && !after ? `${node}` : `${node} (${EVENTS[event]}${after})`;
}

function sessionNodes(model, session) {
  const nodes = (model.bySession.get(session) || []).map((row) => ({
    row, node: model.columns.node[row], begin: model.dispatched[row], end: model.completed[row], first: model.first[row],
    parents: model.columns.parents ? model.columns.parents[row] : [], edges: edgesOf(model, row), history: model.optional('history_parent', row),
    wait: model.columns.wait ? model.columns.wait[row] / 1e6 : 0, ok: model.ok[row], drained: model.drained(row), never: null, tool: null,
  }));
  for (const run of model.toolRuns.get(session) || []) {
    // Its bar begins with the call; `first` is the start of its service.
    const after = (micros) => (run.ready + micros) / 1e6;
    nodes.push({
      row: null, node: run.node, begin: after(0), first: after(run.started), end: after(run.ended), tool: run,
      parents: run.edges.map(([node]) => node), edges: run.edges.map(([node, event, delay]) => ({ node, event, delay: delay / 1e6 })),
      history: null, wait: 0, ok: !run.failed, drained: false, never: null,
    });
  }
  nodes.sort((a, b) => a.begin - b.begin || a.node - b.node);
  nodes.byNode = new Map(nodes.map((node) => [node.node, node]));
  return nodes;
}

// The parts of a critical path: the name for users, and the class of the color.
const PATH_PARTS = {
  client_queueing: ['client queueing', 'queueing'], prefill: ['prefill', 'prefill'], decode: ['decode', 'decode'],
  tool_waiting: ['tool waiting', 'tool-waiting'], tool_service: ['tool service', 'tool'], think: ['think time', 'thinking'],
};

// The numbers of requests and of tool runs, as text.
function nodeCounts(requests, runs) {
  return `${plural(requests, 'request', 'requests')}${runs ? `, ${plural(runs, 'tool run', 'tool runs')}` : ''}`;
}

// The split of a session's makespan along its critical path, as a bar and as text.
function pathSplit(path, nodes) {
  const total = path.parts.reduce((sum, [, micros]) => sum + micros, 0);
  const parts = path.parts.filter(([, micros]) => micros > 0).map(([name, micros]) => {
    const [label, color] = PATH_PARTS[name] || [words(name), 'idle'];
    return { label, color, time: micros / 1e6, share: micros / total };
  });
  const bar = svg('svg', { class: 'path-bar', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  let at = 0;
  for (const part of parts) {
    bar.append(svg('rect', { x: at * 1000, y: 0, width: part.share * 1000, height: 10, class: part.color }));
    at += part.share;
  }
  const text = parts.map((part) => el('span', { class: 'path-part' },
    svg('svg', { class: 'path-key', viewBox: '0 0 10 10', 'aria-hidden': 'true' }, svg('rect', { width: 10, height: 10, class: part.color })),
    `${part.label} ${withUnit(part.time, 's')} (${withUnit(part.share, 'share')})`));
  const runs = path.steps.filter(([node]) => nodes.byNode.get(node).tool).length;
  const head = `Critical path (underlined): ${nodeCounts(path.steps.length - runs, runs)}, ${withUnit(total / 1e6, 's')}`;
  return [el('p', { class: 'path-text' }, el('span', { class: 'path-part' }, head), ...text), bar];
}

class SessionView {
  constructor(page) {
    this.page = page;
    this.session = null;
    this.current = 0;
    this.input = el('input', { type: 'number', id: 'session-number', min: '0', step: '1', inputmode: 'numeric', onchange: () => this.go(Number(this.input.value)) });
    this.facts = el('span', { class: 'session-facts' });
    this.drawing = el('div', { class: 'graph', tabindex: '0', role: 'group', 'aria-roledescription': 'session graph', onkeydown: (event) => this.key(event) });
    this.split = el('div', { class: 'path-split' });
    this.detail = el('dl', { class: 'node-detail' });
    const button = (label, title, work) => el('button', { type: 'button', title, onclick: work }, label);
    show('session', el('div', { class: 'toolbar' },
      el('label', { for: 'session-number' }, 'Session'), button('‹', 'Session before', () => this.step(-1)), this.input, button('›', 'Next session', () => this.step(1)),
      button('Longest', 'The session that took longest', () => this.pick((rows) => this.length(rows))),
      button('Most requests', 'The session with the most requests', () => this.pick((rows) => rows.length)),
      button('Next failed', 'The next session with a failed request', () => this.nextFailed()),
      button('Select its requests', 'Show only this session everywhere', () => select({ session: this.session })),
      this.facts), this.split, this.drawing, this.detail);
    if (window.ResizeObserver) new ResizeObserver(eachFrame(() => this.draw())).observe(this.drawing);
  }

  length(rows) {
    const { model } = this.page;
    return Math.max(...rows.map((row) => model.completed[row])) - Math.min(...rows.map((row) => model.dispatched[row]));
  }

  pick(score) {
    let best = this.session;
    let most = -Infinity;
    for (const [session, rows] of this.page.model.bySession) {
      const value = score(rows);
      if (value > most) [best, most] = [session, value];
    }
    this.go(best);
  }

  nextFailed() {
    const { model } = this.page;
    const order = sessionOrder(model);
    const from = order.indexOf(this.session);
    for (let step = 1; step <= order.length; step += 1) {
      const session = order[(from + step) % order.length];
      if (model.bySession.get(session).some((row) => model.failed(row))) return this.go(session);
    }
    announce('No session has a failed request.');
    return undefined;
  }

  step(by) {
    const order = sessionOrder(this.page.model);
    if (order.length) this.go(order[(order.indexOf(this.session) + by + order.length) % order.length]);
  }

  go(session, node) {
    if (!this.page.model.bySession.has(session)) {
      announce(`Session ${session} is not on this page.`);
      this.input.value = this.session === null ? '' : this.session;
      return;
    }
    this.session = session;
    this.current = 0;
    this.draw(node);
  }

  // New data: the same session, if it is still there.
  refresh() {
    const { model } = this.page;
    byId('session').hidden = model.rows === 0;
    if (!model.bySession.has(this.session)) this.session = firstSession(model);
    this.draw();
  }

  showFocus() {
    const { model } = this.page;
    const { focus } = selection;
    if (focus < 0 || focus >= model.rows) return this.mark();
    if (model.columns.session[focus] !== this.session) this.session = model.columns.session[focus];
    this.draw(model.columns.node[focus]);
    return undefined;
  }

  draw(node) {
    const { model } = this.page;
    const wide = this.drawing.clientWidth;
    if (this.session === null || wide < 60) return;
    this.input.value = this.session;
    const nodes = sessionNodes(model, this.session);
    this.nodes = nodes;
    if (node !== undefined) this.current = Math.max(0, nodes.findIndex((entry) => entry.node === node));
    this.current = Math.min(this.current, nodes.length - 1);
    const lanes = graphLanes(nodes);
    const never = model.neverSent.get(this.session) || [];
    const about = model.sessions.get(this.session);
    const begin = Math.min(...nodes.map((entry) => entry.begin - Math.min(entry.wait, entry.parents.length ? 0 : entry.wait)), about && about.started === about.started ? about.started : Infinity);
    const end = Math.max(...nodes.map((entry) => entry.end));
    const right = wide - (never.length ? 96 : 14);
    const x = linearScale([begin, end > begin ? end : begin + 1], [12, right]);
    const neverLanes = Math.min(never.length, 8);
    const space = Math.max(THINNEST, Math.min(LANE, HIGHEST / Math.max(lanes, neverLanes)));
    const bar = Math.min(14, space - 3);
    const high = 14 + Math.max(lanes, neverLanes) * space + 24;
    const y = (lane) => 14 + (lane + 0.5) * space - 4 * (space / LANE);
    const picture = svg('svg', { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, 'aria-hidden': 'true' });
    const grid = svg('g', { class: 'graph-grid' });
    const own = linearScale([0, end - begin || 1], [12, right]);
    const ownTicks = own.ticks(Math.max(2, Math.floor(wide / 110)));
    const ownTexts = tickTexts(ownTicks, 's');
    ownTicks.forEach((tick, index) => {
      const at = Math.round(own(tick)) + 0.5;
      const last = index === ownTicks.length - 1;
      grid.append(svg('line', { x1: at, x2: at, y1: 6, y2: high - 20 }),
        svg('text', { x: Math.max(10, at), y: high - 6, 'text-anchor': index ? 'middle' : 'start' }, ownTexts[index] + (last ? THIN + measure('s', tick).suffix : '')));
    });
    picture.append(grid);
    const path = about && about.path;
    const onPath = new Map(path ? path.steps.map(([step, event], place) => [step, { event, before: place ? path.steps[place - 1][0] : null }]) : []);
    this.onPath = onPath;
    this.split.replaceChildren(...(path ? pathSplit(path, nodes) : []));
    const edges = svg('g', { class: 'graph-edges' });
    for (const child of nodes) {
      for (const edge of child.edges) {
        const parent = nodes.byNode.get(edge.node);
        if (!parent) continue;
        const [x0, y0, x1, y1] = [x(eventOf(parent, edge)), y(parent.lane), x(child.begin), y(child.lane)];
        const bend = Math.max(8, (x1 - x0) / 2);
        edges.append(svg('path', {
          d: parent.lane === child.lane ? `M${x0} ${y0}H${x1}` : `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`,
          class: `edge${child.history === edge.node ? ' history' : ''}${onPath.has(child.node) && onPath.get(child.node).before === edge.node ? ' critical' : ''}`,
        }));
      }
    }
    picture.append(edges);
    const marks = svg('g', {});
    nodes.forEach((entry, place) => {
      const [x0, x1, top] = [x(entry.begin), x(entry.end), y(entry.lane) - bar / 2];
      const wideEnough = Math.max(3, x1 - x0);
      const group = svg('g', { class: entry.ok || entry.drained ? 'node' : 'node failed', 'data-place': place, onclick: () => this.choose(place) });
      group.append(svg('rect', { x: x0 - 3, y: top - (space - bar) * 0.3, width: wideEnough + 6, height: bar + (space - bar) * 0.6, class: 'node-back' }));
      if (entry.tool) {
        const middle = x(entry.first);
        group.append(svg('rect', { x: x0, y: top, width: Math.max(0, middle - x0), height: bar, class: 'tool-waiting' }),
          svg('rect', { x: middle, y: top, width: Math.max(1.5, x1 - middle), height: bar, class: entry.ok ? 'tool' : 'failure' }));
      } else if (entry.ok && entry.first === entry.first) {
        const middle = x(entry.first);
        group.append(svg('rect', { x: x0, y: top, width: Math.max(1, middle - x0), height: bar, class: 'prefill' }),
          svg('rect', { x: middle, y: top, width: Math.max(1.5, x1 - middle), height: bar, class: 'decode' }));
      } else group.append(svg('rect', { x: x0, y: top, width: wideEnough, height: bar, class: entry.drained ? 'idle' : entry.ok ? 'decode' : 'failure' }));
      const step = onPath.get(entry.node);
      if (step) {
        const until = x(eventOf(entry, step));
        group.append(svg('rect', { x: x0, y: top + bar, width: Math.max(3, until - x0), height: 3, class: 'critical' }));
      }
      const name = entry.tool && wideEnough > entry.tool.tool.length * 7 + 30 ? `${entry.node} ${entry.tool.tool}` : `${entry.node}`;
      if (wideEnough > 18 && bar >= 12) group.append(svg('text', { x: x0 + 4, y: top + 11, class: 'node-name' }, name));
      const thought = entry.parents.length && entry.wait > 0;
      if (thought) {
        const met = entry.edges.filter((edge) => nodes.byNode.has(edge.node))
          .map((edge) => x(eventOf(nodes.byNode.get(edge.node), edge) + edge.delay));
        const room = x0 - Math.max(-Infinity, ...met);
        const text = `think ${withUnit(entry.wait, 's')}`;
        if (bar >= 12 && room > text.length * 6 + 8) marks.append(svg('text', { x: x0 - room / 2, y: top - 2, class: 'think', 'text-anchor': 'middle' }, text));
      }
      marks.append(group);
    });
    never.slice(0, neverLanes).forEach((entry, place) => {
      const [left, top] = [right + 14, y(place) - bar / 2];
      const more = place === neverLanes - 1 && never.length > neverLanes;
      marks.append(svg('rect', { x: left, y: top, width: 16, height: bar, class: 'never' }),
        svg('text', { x: left + 21, y: top + 11, class: 'never-name' }, more ? `+${never.length - place} more` : `${entry.node} not sent`));
    });
    picture.append(marks);
    this.drawing.replaceChildren(picture);
    const ended = about && about.end ? `, ${about.end}` : '';
    const runs = nodes.filter((entry) => entry.tool).length;
    const known = nodes.length - runs + never.length;
    const total = about ? about.requests : known;
    this.facts.textContent = `${nodeCounts(nodes.length - runs, runs)}${total > known ? ` of ${count(total)} on this page` : ''}${never.length ? `, ${count(never.length)} never sent` : ''}, ${withUnit(end - begin, 's')}${ended}`;
    this.drawing.setAttribute('aria-label', `Session ${this.session}: ${this.facts.textContent}. Arrow keys step through its requests and tool runs, Enter selects a request.`);
    this.mark();
  }

  mark() {
    const { nodes } = this;
    if (!nodes || !nodes.length) return;
    this.drawing.querySelectorAll('.node').forEach((group) => {
      const place = Number(group.dataset.place);
      group.classList.toggle('current', place === this.current);
      group.classList.toggle('marked', nodes[place].row === selection.focus);
    });
    const entry = nodes[this.current];
    const { model } = this.page;
    const pair = (name, value) => (value === null ? null : el('div', {}, el('dt', {}, name), el('dd', {}, value)));
    const parents = entry.edges.length ? entry.edges.map(edgeText).join(', ') : 'none';
    if (entry.tool) {
      this.detail.replaceChildren(...[
        pair('Tool run', this.nameOf(entry)), pair('Tool', entry.tool.tool), pair('Status', entry.ok ? 'ended' : 'failed'),
        pair('Critical path', this.onPath.has(entry.node) ? `on it until its ${EVENTS[this.onPath.get(entry.node).event]}` : null),
        pair('Waits for', parents), pair('Called', instant(entry.begin, 20)), pair('Waited', withUnit(entry.first - entry.begin, 's')),
        pair('Service', `${withUnit(entry.end - entry.first, 's')}${entry.tool.cold ? ' (cold start)' : ''}`),
        pair('Result', `${count(entry.tool.result_tokens)} tokens`),
      ].filter(Boolean));
      return;
    }
    this.detail.replaceChildren(...[
      pair('Request', model.name(entry.row)),
      pair('Status', model.cancelled(entry.row) ? 'cancelled by the workload' : entry.ok ? `answered (${words(model.message(entry.row)) || 'no reason given'})` : `failed: ${words(model.failure(entry.row))}. ${model.message(entry.row)}`),
      pair('Critical path', this.onPath.has(entry.node) ? `on it until its ${EVENTS[this.onPath.get(entry.node).event]}` : null),
      pair('Waits for', parents), pair('Think time', entry.parents.length ? withUnit(entry.wait, 's') : null),
      pair('Dispatched', instant(entry.begin, 20)), pair('Took', withUnit(entry.end - entry.begin, 's')),
      ...model.metrics.filter((metric) => metric.name === 'ttfc' || metric.custom).map((metric) => pair(metric.label, withUnit(metric.observed[entry.row], metric.unit))),
      pair('Tokens', `${count(model.columns.prompt_tokens[entry.row])} in with history, ${count(model.output[entry.row])} out`),
      pair('Labels', model.labels(entry.row).map(([name, value]) => `${name}=${value}`).join(', ') || null),
    ].flat().filter(Boolean));
  }

  nameOf(entry) {
    return entry.tool ? `${this.session}/${entry.node}` : this.page.model.name(entry.row);
  }

  choose(place) {
    this.current = place;
    this.mark();
    if (!this.nodes[place].tool) focusOn(this.nodes[place].row);
  }

  // Left and right follow the edges, up and down the order in time.
  key(event) {
    const { nodes } = this;
    if (!nodes || !nodes.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const entry = nodes[this.current];
    const place = (found) => (found ? nodes.indexOf(found) : this.current);
    if (event.key === 'ArrowDown') this.current = Math.min(nodes.length - 1, this.current + 1);
    else if (event.key === 'ArrowUp') this.current = Math.max(0, this.current - 1);
    else if (event.key === 'ArrowLeft') this.current = place(entry.parents.map((parent) => nodes.byNode.get(parent)).find(Boolean));
    else if (event.key === 'ArrowRight') this.current = place(nodes.find((child) => child.parents.includes(entry.node)));
    else if (event.key === 'Home') this.current = 0;
    else if (event.key === 'End') this.current = nodes.length - 1;
    else if (event.key === 'Enter') this.choose(this.current);
    else if (event.key === ',') this.step(-1);
    else if (event.key === '.') this.step(1);
    else return;
    event.preventDefault();
    this.mark();
    this.drawing.querySelector('.node.current').scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const now = this.nodes[this.current];
    const [kind, ended] = now.tool ? [`tool run of ${now.tool.tool}`, 'ended'] : ['request', 'answered'];
    announce(`${kind} ${this.nameOf(now)}, ${now.ok ? ended : 'failed'}, took ${withUnit(now.end - now.begin, 's')}`);
  }
}
