// Building blocks of the page. Everything that comes from an audit event was chosen by some
// client and is hostile: it only ever becomes text, never markup, and characters that change
// how text is read (controls, bidirectional overrides, zero widths, odd spaces) are shown as
// escapes. Nothing here or elsewhere sets innerHTML; the page's policy would refuse it.

const unreadable = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const escape = c => c === '\n' ? '\\n' : c === '\t' ? '\\t' : c.length > 1
  ? `\\u{${c.codePointAt(0).toString(16)}}` : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');

// clean returns s with unreadable characters as escapes, as the commands print them. When
// there are some, backslashes are doubled, so that an escape shown was not in the text.
export function clean(s) {
  s = String(s ?? '');
  return s.search(unreadable) < 0 ? s : s.replaceAll('\\', '\\\\').replace(unreadable, escape);
}

// block makes the text of a preformatted block: as clean, with its line breaks.
export function block(s) {
  return document.createTextNode(s.replace(unreadable, c => c === '\n' ? c : escape(c)));
}

// short cuts a long name for a table; the whole of it is in the answer to "why".
export function short(s, most = 160) {
  s = String(s ?? '');
  if (s.length <= most + 20) return s;
  const head = s.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return `${head}… (${count(s.length - head.length)} more characters)`;
}

// name shows a string of an audit event: isolated from the text around it, so that
// right-to-left names do not reorder their neighbours.
export function name(s, most) {
  return h('bdi', {class: 'mono'}, short(s, most));
}

// prose shows a sentence with words of audit events in it, isolated as a name is.
export function prose(s, most = 1000) { return h('bdi', {}, short(s, most)); }

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
    else if (k === 'href' && !String(v).startsWith('#')) throw new Error('links stay on the page');
    else el.setAttribute(k, v === true ? '' : clean(v));
  }
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(clean(c)));
  }
  return el;
}

// swap replaces what a container shows and keeps the reader's place in it: the focus, by
// data-k, how far tables are scrolled sideways, and which details with a data-k are open.
export function swap(container, ...children) {
  const folds = new Map([...container.querySelectorAll('details[data-k]')].map(e => [e.dataset.k, e.open]));
  const key = container.contains(document.activeElement) ? document.activeElement.dataset?.k : undefined;
  const left = [...container.querySelectorAll('.scroll')].map(e => e.scrollLeft);
  container.replaceChildren(...children.flat(Infinity).filter(Boolean));
  container.querySelectorAll('.scroll').forEach((e, i) => { e.scrollLeft = left[i] ?? 0; });
  for (const e of container.querySelectorAll('details[data-k]')) e.open = folds.get(e.dataset.k) ?? e.open;
  if (key) [...container.querySelectorAll('[data-k]')].find(e => e.dataset.k === key)?.focus({preventScroll: true});
}

// lines puts each text on a line of its own.
export function lines(...list) { return list.flatMap((l, i) => i ? [h('br'), l] : [l]); }

// names shows several names, each apart from the others; most of them at once. beyond are
// further ones that are only counted.
export function names(list, most = 12, show = s => name(s, 200), beyond = 0) {
  if (!list?.length) return h('span', {class: 'muted'}, '(none)');
  const shown = list.slice(0, most).flatMap((s, i) => i ? [', ', show(s)] : [show(s)]);
  const rest = Math.max(0, list.length - most) + beyond;
  return rest ? [shown, h('span', {class: 'muted'}, ` and ${count(rest)} more`)] : shown;
}

// card is a titled box; its body is what swap works on. note is a muted line beside the title.
export function card(width, title, note) {
  const body = h('div', {class: 'body'}, h('div', {class: 'loading'}));
  const el = h('section', {class: 'card ' + width, 'aria-label': title}, h('h2', {}, title, note && h('small', {}, note)), body);
  return {el, body};
}

// fold is a part that opens on request; k names it between paints.
export function fold(k, summary, open, ...children) {
  return h('details', {'data-k': k, open}, h('summary', {}, summary), children);
}

// table renders rows of {cells, href, k}; cells are text or nodes. Heads beginning with '#'
// are numbers. A row with href is a link: its first cell with a link takes the keyboard, the
// whole row the mouse.
export function table(heads, rows, cls) {
  const numeric = heads.map(t => t.startsWith('#'));
  const labels = heads.map(t => t.replace(/^#/, ''));
  return h('div', {class: 'scroll'}, h('table', {class: cls},
    h('thead', {}, h('tr', {}, labels.map((t, i) => h('th', {class: numeric[i] && 'num', scope: 'col'}, t)))),
    h('tbody', {}, rows.map(row => {
      const tr = h('tr', {class: row.href && 'go'}, row.cells.map((c, i) => h('td', {class: numeric[i] && 'num', 'data-label': labels[i]}, c)));
      if (row.href) {
        tr.addEventListener('click', e => {
          if (e.target.closest('a') || String(getSelection())) return;
          location.hash = row.href;
        });
      }
      return tr;
    }))));
}

// count formats a whole number.
export function count(n) { return Number(n ?? 0).toLocaleString('en-US'); }

// plural puts a number before its noun.
export function plural(n, one, many = one + 's') { return `${count(n)} ${Number(n) === 1 ? one : many}`; }

// percent formats a share; it never rounds something short of everything up to 100 %, nor
// something down to nothing.
export function percent(part, whole) {
  if (!whole) return '–';
  const p = 100 * part / whole;
  if (p === 0 || p === 100) return p + ' %';
  if (p > 99.99) return '> 99.99 %';
  if (p < 0.01) return '< 0.01 %';
  return p.toFixed(p > 99 || p < 1 ? 2 : 1) + ' %';
}

// time formats an instant in UTC, as audit logs do.
export function time(t, withDate) {
  const d = new Date(t);
  if (isNaN(d)) return '–';
  const iso = d.toISOString();
  return withDate ? iso.slice(0, -5).replace('T', ' ') : iso.slice(-13, -1);
}

// span words a range of time without saying a date twice.
export function span(from, to) {
  const a = time(from, true), b = time(to, true);
  return a.slice(0, 10) === b.slice(0, 10) ? `${a} – ${b.slice(11)} UTC` : `${a} – ${b} UTC`;
}
