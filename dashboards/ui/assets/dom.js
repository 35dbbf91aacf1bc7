// Building blocks of the page. Everything that comes from an audit event was chosen by some
// client and is hostile: it only ever becomes text, never markup, and characters that change
// how text is read (controls, bidirectional overrides, zero widths) are shown as escapes.

const unreadable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g;

// clean returns s with unreadable characters as \uXXXX.
export function clean(s) {
  return String(s ?? '').replace(unreadable, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// h makes an element: h('td', {class: 'num', onclick: f}, child, 'text', ...).
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg makes an SVG element in the same way.
export function svg(tag, props, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function fill(el, props, children) {
  for (const [k, v] of Object.entries(props ?? {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else if (k === 'style') el.style.cssText = v; // the page's policy refuses style attributes
    else el.setAttribute(k, v === true ? '' : String(v));
  }
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(clean(c)));
  }
  return el;
}

// go makes an element act on click and on Enter.
export function go(el, action) {
  el.classList.add('go');
  el.tabIndex = 0;
  el.addEventListener('click', action);
  el.addEventListener('keydown', e => { if (e.key === 'Enter') action(e); });
  return el;
}

// card is a titled box.
export function card(width, title, ...children) {
  return h('section', {class: 'card ' + width}, h('h2', {}, title), ...children);
}

// table renders rows (arrays of cells); a cell is text or a node. head entries starting
// with '#' are numbers.
export function table(head, rows, action) {
  const numeric = head.map(t => t.startsWith('#'));
  return h('div', {class: 'scroll'}, h('table', {},
    h('thead', {}, h('tr', {}, head.map((t, i) => h('th', {class: numeric[i] && 'num', scope: 'col'}, t.replace(/^#/, ''))))),
    h('tbody', {}, rows.map((cells, n) => {
      const tr = h('tr', {}, cells.map((c, i) => h('td', {class: numeric[i] && 'num'}, c)));
      return action ? go(tr, () => action(n)) : tr;
    }))));
}

// count formats a whole number.
export function count(n) { return Number(n ?? 0).toLocaleString('en-US'); }

// percent formats a share; it never rounds something short of everything up to 100 %.
export function percent(part, whole) {
  if (!whole) return '–';
  const p = 100 * part / whole;
  if (p < 100 && p > 99.99) return '> 99.99 %';
  return (p === 100 ? '100' : p.toFixed(p > 99 ? 2 : 1)) + ' %';
}

// time formats an instant in UTC, as audit logs do.
export function time(t, withDate) {
  const iso = new Date(t).toISOString();
  return withDate ? iso.slice(0, 19).replace('T', ' ') : iso.slice(11, 23);
}
