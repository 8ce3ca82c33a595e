// Elements. Text enters the page here only, and only as text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

// The element of a section's content.
function bodyOf(section) {
  return byId(section).querySelector('.body');
}

function show(section, ...children) {
  const content = children.flat(Infinity).filter(Boolean);
  bodyOf(section).replaceChildren(...content);
  byId(section).hidden = content.length === 0;
}

// Returns true if a part of the data differs from the last update. Unchanged parts keep their state: open or closed, focused or not.
const shownBefore = new Map();

function changed(part, ...values) {
  const now = JSON.stringify(values);
  if (shownBefore.get(part) === now) return false;
  shownBefore.set(part, now);
  return true;
}

// A table that scrolls sideways within the page. A column: {label, title, right}.
function table(caption, columns, rows, attributes) {
  const head = columns.map((column) =>
    el('th', { scope: 'col', class: column.right ? 'right' : null, title: column.title || null }, column.label));
  return el('div', { class: 'scroll' },
    el('table', attributes || {}, el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows)));
}

// Returns the first rows, and a button that shows the others. Opened lists stay open.
const opened = new Set();

function first(part, most, items, noun, redraw) {
  // A few more are not worth a button.
  if (items.length <= most + 3 || opened.has(part)) return [items, null];
  const more = el('button', {
    type: 'button', class: 'more', 'data-more': part,
    onclick: () => {
      opened.add(part);
      redraw();
    },
  }, `All ${count(items.length)} ${noun}`);
  return [items.slice(0, most), more];
}

// Prose with code in backticks.
function prose(text) {
  return String(text).split('`').map((part, place, all) =>
    (place % 2 === 1 && place < all.length - 1 ? el('code', {}, part) : place % 2 === 1 ? `\`${part}` : part));
}

function announce(text) {
  byId('announcer').textContent = text;
}

// Calls a function at most once before the next frame.
function eachFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

// A choice of an earlier visit. A page from disk may have no storage.
function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch (refused) {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch (refused) {
    // The choice applies to this visit only.
  }
}
