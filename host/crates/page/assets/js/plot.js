// A chart: two canvases (marks below, what follows the pointer above), axes, zoom, brush, a reading cursor for pointer and keyboard.

const theme = { colors: {}, font: '' };

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['ink', 'muted', 'faint', 'line', 'grid', 'panel', 'blue', 'sky', 'orange', 'green', 'vermillion', 'purple', 'yellow', 'dim', 'brush']) {
    theme.colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  theme.font = `11px ${style.getPropertyValue('--font').trim()}`;
}

// The domain that charts share. `full` is everything, `domain` what is in view.
class Axis {
  constructor() {
    this.full = [0, 1];
    this.domain = [0, 1];
    this.log = false;
    this.plots = [];
    this.hover = null;
  }

  // New limits of everything. A view that showed everything goes on doing so; one that was zoomed stays.
  setFull(full, log) {
    const followed = this.domain[0] === this.full[0] && this.domain[1] === this.full[1];
    this.log = Boolean(log);
    this.full = full;
    if (followed || this.domain[0] >= full[1] || this.domain[1] <= full[0]) this.domain = full;
    this.redraw();
  }

  view(domain) {
    let [low, high] = domain;
    const shape = this.log ? Math.log : (value) => value;
    const back = this.log ? Math.exp : (value) => value;
    const [from, to] = this.full.map(shape);
    let [a, b] = [shape(Math.max(low, this.log ? this.full[0] / 1e6 : -Infinity)), shape(high)];
    const width = Math.min(to - from, Math.max(b - a, (to - from) * 1e-5));
    a = Math.max(from, Math.min(a, to - width));
    b = a + width;
    [low, high] = [back(a), back(b)];
    this.domain = width >= (to - from) * 0.9999 ? this.full : [low, high];
    this.redraw();
  }

  zoom(factor, about) {
    const shape = this.log ? Math.log : (value) => value;
    const back = this.log ? Math.exp : (value) => value;
    const [a, b] = this.domain.map(shape);
    const center = shape(about);
    this.view([back(center - (center - a) * factor), back(center + (b - center) * factor)]);
  }

  pan(share) {
    const shape = this.log ? Math.log : (value) => value;
    const back = this.log ? Math.exp : (value) => value;
    const [a, b] = this.domain.map(shape);
    this.view([back(a + (b - a) * share), back(b + (b - a) * share)]);
  }

  reset() {
    this.domain = this.full;
    this.redraw();
  }

  point(value) {
    this.hover = value;
    this.plots.forEach((plot) => plot.drawOver());
  }

  redraw() {
    this.plots.forEach((plot) => plot.redraw());
  }
}

const PLOTS = [];

// Options: title, unit texts, height, axis (an Axis), x {unit, label}, y() -> {domain, log, unit, label}, draw(context, plot), over(context, plot),
// read(plot, x, y) -> {at: [x, y], lines, row} or null, brush 'x' | 'y' | 'xy', brushed() -> {x, y}, onBrush({x, y}), describe() -> text, legend, controls.
class Plot {
  constructor(options) {
    this.options = options;
    this.margin = { left: 58, right: 12, top: 8, bottom: options.bottom || 24, ...options.margin };
    this.base = el('canvas', { 'aria-hidden': 'true' });
    this.over = el('canvas', { 'aria-hidden': 'true' });
    this.tip = el('div', { class: 'tip', hidden: true });
    this.area = el('div', {
      class: 'plot-area', tabindex: '0', role: 'group', 'aria-roledescription': 'interactive chart',
      style: `height:${options.height}px`,
    }, this.base, this.over, this.tip);
    this.heading = el('h3', {}, options.title);
    this.note = el('span', { class: 'plot-note' });
    this.legend = el('span', { class: 'legend', 'aria-hidden': 'true' });
    this.node = el('figure', { class: 'plot', id: options.id || null },
      el('figcaption', {}, this.heading, this.legend, this.note, el('span', { class: 'controls' }, options.controls || [])), this.area);
    this.cursor = null;
    this.drag = null;
    this.redraw = eachFrame(() => this.draw());
    this.drawOver = eachFrame(() => this.paintOver());
    options.axis.plots.push(this);
    PLOTS.push(this);
    this.listen();
    if (window.ResizeObserver) new ResizeObserver(() => this.redraw()).observe(this.area);
  }

  setLegend(entries) {
    this.legend.replaceChildren(...entries.map(([color, text, shape]) =>
      el('span', { class: 'key' }, el('i', { class: `swatch ${shape || 'box'}`, style: `--swatch:var(--${color})` }), text)));
  }

  // The box of the marks, in CSS pixels.
  get box() {
    const { left, right, top, bottom } = this.margin;
    return { left, top, right: this.width - right, bottom: this.height - bottom };
  }

  size(canvas) {
    const ratio = this.ratio;
    if (canvas.width !== Math.round(this.width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = theme.font;
    return context;
  }

  draw() {
    this.width = this.paper || this.area.clientWidth;
    this.height = this.area.clientHeight;
    if (this.width < 40 || this.height < 30) return;
    this.ratio = this.paper ? 3 : Math.min(3, window.devicePixelRatio || 1);
    if (this.width < 520 && !this.options.margin) this.margin.left = 46;
    const { left, right, top, bottom } = this.box;
    const { axis } = this.options;
    this.x = (axis.log ? logScale : linearScale)(axis.domain, [left, right]);
    const y = this.options.y();
    this.yAxis = y;
    this.y = (y.log ? logScale : linearScale)(y.domain, [bottom, top]);
    const context = this.size(this.base);
    this.grid(context, y);
    context.save();
    context.beginPath();
    context.rect(left, top - 2, right - left, bottom - top + 3);
    context.clip();
    this.options.draw(context, this);
    context.restore();
    this.paintOver();
    this.area.setAttribute('aria-label', `${this.heading.textContent}. ${this.options.describe ? this.options.describe() : ''}`);
  }

  // Browsers leave canvases out when they print: a picture takes the place, as wide as a sheet and finer than the screen.
  toPaper() {
    this.paper = this.node.parentNode.matches('.pair, .grid') ? 440 : 920;
    this.draw();
    this.picture = el('img', { alt: '', class: 'picture', src: this.base.toDataURL() });
    this.area.append(this.picture);
  }

  fromPaper() {
    this.paper = 0;
    if (this.picture) this.picture.remove();
  }

  grid(context, y) {
    const { left, right, top, bottom } = this.box;
    const { colors } = theme;
    context.lineWidth = 1;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    if (y.ticks !== 'none') {
      const ticks = this.y.ticks(Math.max(2, Math.floor((bottom - top) / 28)));
      const texts = tickTexts(ticks, y.unit, this.y.log);
      const as = measure(y.unit, Math.max(...ticks, 0));
      ticks.forEach((tick, index) => {
        const at = Math.round(this.y(tick)) + 0.5;
        context.strokeStyle = colors.grid;
        context.beginPath();
        context.moveTo(left, at);
        context.lineTo(right, at);
        context.stroke();
        context.fillStyle = colors.muted;
        const last = index === ticks.length - 1 && !this.y.log && as.suffix && as.suffix.length < 4;
        context.fillText(texts[index] + (last ? THIN + as.suffix : ''), left - 7, at);
      });
    }
    context.strokeStyle = colors.line;
    context.beginPath();
    context.moveTo(left, bottom + 0.5);
    context.lineTo(right, bottom + 0.5);
    context.stroke();
    if (this.options.x.hidden) return;
    const { unit } = this.options.x;
    const ticks = this.x.ticks(Math.max(2, Math.floor((right - left) / (this.x.log ? 58 : 66))));
    const texts = tickTexts(ticks, unit, this.x.log);
    const as = measure(unit, Math.max(...ticks.map(Math.abs), 0));
    context.textBaseline = 'top';
    context.textAlign = 'center';
    context.fillStyle = colors.muted;
    let free = -Infinity;
    ticks.forEach((tick, index) => {
      const at = this.x(tick);
      const last = index === ticks.length - 1 && !this.x.log;
      const text = texts[index] + (last && as.suffix ? THIN + as.suffix : '');
      const half = context.measureText(text).width / 2;
      const place = Math.max(half, Math.min(at, this.width - half - 1));
      context.strokeStyle = colors.line;
      context.beginPath();
      context.moveTo(Math.round(at) + 0.5, bottom);
      context.lineTo(Math.round(at) + 0.5, bottom + 4);
      context.stroke();
      if (place - half < free + 6) return;
      context.fillText(text, place, bottom + 7);
      free = place + half;
    });
  }

  paintOver() {
    if (!this.x) return;
    const context = this.size(this.over);
    const { left, right, top, bottom } = this.box;
    const { colors } = theme;
    context.save();
    context.beginPath();
    context.rect(left - 1, top - 4, right - left + 2, bottom - top + 5);
    context.clip();
    const brushed = this.drag && this.drag.range ? this.drag.range : this.options.brushed ? this.options.brushed() : null;
    if (brushed && (brushed.x || brushed.y)) {
      const [x0, x1] = brushed.x ? brushed.x.map((value) => this.x(value)) : [left, right];
      const [y1, y0] = brushed.y ? brushed.y.map((value) => this.y(value)) : [bottom, top];
      const [a, b] = [Math.max(left, x0), Math.min(right, x1)];
      const [c, d] = [Math.max(top, y0), Math.min(bottom, y1)];
      if (b >= a && d >= c) {
        context.fillStyle = colors.brush;
        context.fillRect(a, c, Math.max(1, b - a), Math.max(1, d - c));
        context.strokeStyle = colors.blue;
        context.lineWidth = 1;
        context.strokeRect(Math.round(a) + 0.5, Math.round(c) + 0.5, Math.max(1, Math.round(b - a) - 1), Math.max(1, Math.round(d - c) - 1));
      }
    }
    if (this.options.over) this.options.over(context, this);
    const hover = this.options.axis.hover;
    if (hover !== null && this.options.crosshair !== false && hover >= this.x.domain[0] && hover <= this.x.domain[1]) {
      const at = Math.round(this.x(hover)) + 0.5;
      context.strokeStyle = colors.faint;
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(at, top);
      context.lineTo(at, bottom);
      context.stroke();
      context.setLineDash([]);
    }
    if (this.reading && this.reading.at) {
      const [x, y] = this.reading.at;
      context.strokeStyle = colors.ink;
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(x, y, 4.5, 0, 7);
      context.stroke();
    }
    context.restore();
  }

  // The values at a position: shown in the tooltip, and announced to screen readers.
  readAt(x, y, aloud) {
    const { left, right } = this.box;
    this.cursor = [x, y];
    this.reading = this.options.read ? this.options.read(this, x, y) : null;
    if (this.options.crosshair !== false) {
      this.options.axis.point(x >= left && x <= right ? this.x.invert(x) : null);
    }
    const lines = this.reading ? this.reading.lines : [];
    this.tip.hidden = lines.length === 0;
    if (lines.length) {
      this.tip.replaceChildren(...lines.map(([text, value], index) =>
        el('div', { class: index ? 'tip-line' : 'tip-head' }, el('span', {}, text), value === undefined ? null : el('b', {}, value))));
      const { offsetWidth: wide, offsetHeight: high } = this.tip;
      const left = x + 14 + wide > this.width ? x - wide - 14 : x + 14;
      this.tip.style.left = `${Math.max(0, Math.min(left, this.width - wide))}px`;
      this.tip.style.top = `${Math.max(-6, Math.min(y + 12, this.height - high + 20))}px`;
      if (aloud) announce(lines.map((line) => line.filter((text) => text !== undefined).join(' ')).join(', '));
    }
    this.drawOver();
  }

  leave() {
    this.reading = null;
    this.cursor = null;
    this.tip.hidden = true;
    this.options.axis.point(null);
    this.drawOver();
  }

  rangeOf(from, to) {
    const { left, right, top, bottom } = this.box;
    const within = (value, low, high) => Math.max(low, Math.min(high, value));
    const kind = this.options.brush;
    const range = {};
    if (kind.includes('x')) {
      range.x = [from[0], to[0]].map((x) => this.x.invert(within(x, left, right))).sort((a, b) => a - b);
    }
    if (kind.includes('y')) {
      range.y = [from[1], to[1]].map((y) => this.y.invert(within(y, top, bottom))).sort((a, b) => a - b);
    }
    return range;
  }

  place(event) {
    const rectangle = this.area.getBoundingClientRect();
    return [event.clientX - rectangle.left, event.clientY - rectangle.top];
  }

  listen() {
    const { area, options } = this;
    area.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !this.x) return;
      const at = this.place(event);
      const brushed = options.brush && options.brushed ? options.brushed() : null;
      // Within a brush of times the brush itself is moved.
      const inside = brushed && brushed.x && options.brush === 'x' && !event.shiftKey
        && at[0] > this.x(brushed.x[0]) + 3 && at[0] < this.x(brushed.x[1]) - 3;
      const edge = brushed && brushed.x && options.brush === 'x'
        ? brushed.x.findIndex((value) => Math.abs(this.x(value) - at[0]) <= 4) : -1;
      this.drag = { from: at, moved: false, pan: event.shiftKey, move: inside ? brushed.x : null, domain: options.axis.domain };
      if (edge >= 0) this.drag.from = [this.x(brushed.x[1 - edge]), at[1]];
      this.drag.edge = edge >= 0;
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener('pointermove', (event) => {
      if (!this.x) return;
      const at = this.place(event);
      const { drag } = this;
      if (drag) {
        if (!drag.moved && Math.hypot(at[0] - drag.from[0], at[1] - drag.from[1]) < 4) return;
        drag.moved = true;
        if (drag.pan) {
          this.options.axis.domain = drag.domain;
          this.x = (options.axis.log ? logScale : linearScale)(drag.domain, [this.box.left, this.box.right]);
          options.axis.pan((drag.from[0] - at[0]) / (this.box.right - this.box.left));
        } else if (options.brush) {
          if (drag.move) {
            const shift = at[0] - drag.from[0];
            drag.range = { x: drag.move.map((value) => this.x.invert(this.x(value) + shift)) };
          } else drag.range = this.rangeOf(drag.from, at);
          options.onBrush(drag.range);
        }
      }
      this.readAt(at[0], at[1], false);
    });
    const end = (event) => {
      const { drag } = this;
      this.drag = null;
      if (!drag) return;
      if (!drag.moved && !drag.edge && event.type === 'pointerup') {
        const at = this.place(event);
        const reading = options.read ? options.read(this, at[0], at[1]) : null;
        if (reading && reading.row !== undefined && reading.row >= 0) focusOn(reading.row);
        else if (options.brush && options.brushed && options.brushed()) options.onBrush(null);
      }
      this.drawOver();
    };
    area.addEventListener('pointerup', end);
    area.addEventListener('pointercancel', end);
    area.addEventListener('pointerleave', () => { if (!this.drag) this.leave(); });
    area.addEventListener('dblclick', () => {
      const brushed = options.brushed ? options.brushed() : null;
      if (brushed && brushed.x && options.axis.domain === options.axis.full) options.axis.view(brushed.x);
      else options.axis.reset();
    });
    area.addEventListener('wheel', (event) => {
      // The wheel alone scrolls the page.
      if (!(event.ctrlKey || event.metaKey || event.altKey) || !this.x) return;
      event.preventDefault();
      const at = this.place(event);
      options.axis.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), this.x.invert(at[0]));
    }, { passive: false });
    area.addEventListener('keydown', (event) => this.key(event));
    area.addEventListener('blur', () => this.leave());
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.x) return;
    const { left, right, top, bottom } = this.box;
    const { axis } = this.options;
    const from = this.cursor || [(left + right) / 2, (top + bottom) / 2];
    const about = this.x.invert(from[0]);
    const step = Math.max(4, (right - left) / 100);
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step], Home: [left - from[0], 0], End: [right - from[0], 0] };
    const move = moves[event.key];
    const upright = event.key === 'ArrowUp' || event.key === 'ArrowDown';
    if (move) {
      const to = [Math.max(left, Math.min(right, from[0] + move[0])), Math.max(top, Math.min(bottom, from[1] + move[1]))];
      if (event.shiftKey && this.options.brush && (!upright || this.options.brush.includes('y'))) {
        this.anchor = this.anchor || from;
        const range = this.rangeOf(this.anchor, to);
        if (this.options.brush === 'xy' && to[1] === this.anchor[1]) delete range.y;
        this.options.onBrush(range);
      } else this.anchor = null;
      this.readAt(to[0], to[1], true);
    } else if (event.key === '+' || event.key === '=') axis.zoom(0.7, about);
    else if (event.key === '-') axis.zoom(1 / 0.7, about);
    else if (event.key === '0') axis.reset();
    else if (event.key === '[') axis.pan(-0.25);
    else if (event.key === ']') axis.pan(0.25);
    else if (event.key === 'z') {
      const brushed = this.options.brushed ? this.options.brushed() : null;
      if (brushed && brushed.x) axis.view(brushed.x);
    } else if (event.key === 'Enter') {
      const reading = this.options.read ? this.options.read(this, from[0], from[1]) : null;
      if (reading && reading.row >= 0) focusOn(reading.row);
    } else return;
    event.preventDefault();
  }
}

function selectBox(label, entries, chosen, change) {
  return el('label', { class: 'choice' }, el('span', { class: 'unseen' }, label),
    el('select', { 'aria-label': label, onchange: (event) => change(event.target.value) },
      entries.map(([value, text]) => el('option', { value, selected: value === chosen }, text))));
}
