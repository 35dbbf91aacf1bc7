// The panels of the first page, each a function of the overview's answer.
import {h, lines, table, count, percent, plural, name} from '../dom.js';
import {link} from '../router.js';
import {subjectOf} from '../links.js';
import {OUTCOMES, chip, decision, explain, explainClass, label} from '../words.js';

const NONE = {outcome: null, class: null, subject: null, decision: null, verb: null, resource: null, before: null, why: null, request: null};

export function empty(text) { return h('p', {class: 'empty'}, lines(...text.split('\n'))); }

// failed says what went wrong in one panel.
export function failed(err, again) {
  return h('div', {class: 'failed', role: 'alert'}, h('p', {}, again ? err.message : 'Not shown: see the other message.'), again && h('button', {onclick: again}, 'Try again'));
}

const TILES = [
  ['Requests', t => count(t.requests), t => plural(t.events, 'audit event'), 'One request may leave several events, one for each stage.', {}],
  ['Agreement', t => percent(t.match, t.match + t.drift), t => `${count(t.match)} match`, 'Of the requests with a certain answer, the share on which replay and apiserver agree: match ÷ (match + drift).', {outcome: 'match'}],
  ['Drift', t => count(t.drift), () => 'replay disagrees', 'drift', {outcome: 'drift'}],
  ['Forbidden', t => count(t.forbid), t => percent(t.forbid, t.requests) + ' of requests', 'Requests that the apiserver refused for lack of permission.', {decision: 'forbid'}],
  ['Ambiguous', t => count(t.ambiguous), () => 'the policy was changing', 'ambiguous', {outcome: 'ambiguous'}],
  ['Indeterminate', t => count(t.indeterminate), t => percent(t.indeterminate, t.requests) + ' of requests', 'indeterminate', {outcome: 'indeterminate'}],
  ['Not judged', t => count(t.not_judged), () => 'no decision in the log', 'not_judged', {outcome: 'not_judged'}],
];

// tiles are links that filter the list below.
export function tiles(t, params) {
  return TILES.map(([title, value, note, tip, filter]) => {
    const [key, want] = Object.entries(filter)[0] ?? [];
    const on = key && params.get(key) === want;
    const cls = title === 'Agreement' ? (t.match && !t.drift ? 'good' : '') : title === 'Drift' && t.drift ? 'bad' : '';
    return h('a', {class: 'tile ' + cls, href: link({...NONE, ...(on ? {} : filter)}), 'data-k': title, 'data-tip': explain(tip) || tip, 'aria-current': on && 'true', onclick: toList},
      h('span', {}, title), h('b', {}, value(t)), h('small', {}, note(t)));
  });
}

export function emptyTiles() {
  return TILES.map(([title]) => h('div', {class: 'tile'}, h('span', {}, title), h('b', {class: 'muted'}, '–'), h('small', {}, ' ')));
}

// toList brings the list of requests on the screen: what was chosen shows there.
function toList() { document.getElementById('requests')?.scrollIntoView({block: 'nearest'}); }

export function coverage(o) {
  const t = o.totals;
  const all = OUTCOMES.reduce((s, k) => s + t[k], 0);
  return [
    h('div', {class: 'stack', role: 'img', 'aria-label': OUTCOMES.map(k => `${label(k)} ${percent(t[k], all)}`).join(', ')},
      OUTCOMES.filter(k => t[k]).map(k => h('i', {class: 'bg-' + k, style: `flex-grow:${t[k]}`, 'data-tip': `${label(k)}: ${count(t[k])}`}))),
    table(['Verdict', '#Requests', '#Share'], OUTCOMES.map(k => {
      const href = link({...NONE, outcome: k});
      return {href, cells: [h('a', {href, 'data-k': k, 'data-tip': explain(k), onclick: toList}, h('i', {class: 'dot bg-' + k}), label(k)), count(t[k]), percent(t[k], all)]};
    })),
    o.next ? advice(o.next) : all > 0 && h('p', {class: 'next settled'}, h('b', {}, 'Nothing is missing. '), 'Every request with a recorded decision was decided again.'),
  ];
}

function advice(n) {
  return h('div', {class: 'next'},
    h('b', {}, n.command ? 'Supply next: ' : 'Still open: '), n.title, h('span', {class: 'muted'}, ` (${plural(n.requests, 'request')})`),
    h('p', {}, n.text),
    (n.command || n.missing.length > 0) && h('details', {}, h('summary', {'data-k': 'advice'}, n.command ? 'How, and what exactly' : 'What exactly'),
      n.command && h('pre', {}, lines(...n.command.split('\n'))),
      h('ul', {class: 'plain'}, n.missing.map(m => h('li', {}, name(m.what), h('span', {class: 'muted'}, ' ' + count(m.requests)))))));
}

const TOLD = {
  same: 'Both say the same.',
  differs: 'They differ: drift, or ambiguous where the policy was changing at that time.',
  raced: 'They differ, and each time the policy was just changing: ambiguous, not drift.',
  open: 'Only one of them decided: indeterminate, or not judged.',
};

// decisions sets what was recorded against what was replayed.
export function decisions(o) {
  if (!o.decisions?.length) return empty('No requests in this range.');
  const rows = ['allow', 'forbid', 'none'], n = {};
  for (const d of o.decisions) n[d.recorded + d.replayed] = (n[d.recorded + d.replayed] ?? 0) + d.requests;
  return [h('div', {class: 'scroll'}, h('table', {class: 'matrix'},
    h('thead', {}, h('tr', {}, h('td', {}), rows.map(r => h('th', {scope: 'col'}, h('small', {}, 'Replay '), decision(r))))),
    h('tbody', {}, rows.map(r => h('tr', {}, h('th', {scope: 'row'}, h('small', {}, 'Apiserver '), decision(r)), rows.map(c => {
      const v = n[r + c] ?? 0;
      const kind = !v ? 'zero' : r === c ? 'same' : r !== 'none' && c !== 'none' ? (o.totals.drift ? 'differs' : 'raced') : 'open';
      return h('td', {class: 'num ' + kind, 'data-tip': TOLD[kind]}, count(v));
    }))))))];
}

// classes lists drift first, whether there is any or not: that there is none is the news.
export function classes(o) {
  const order = ['drift', 'ambiguous', 'indeterminate', 'not_judged'];
  const list = [...o.classes].sort((a, b) => order.indexOf(a.outcome) - order.indexOf(b.outcome) || b.count - a.count);
  return [
    !o.totals.drift && o.totals.match > 0 && h('p', {class: 'good-news'}, h('i', {class: 'dot bg-match'}), 'No drift: wherever the replay is certain, it agrees with the apiserver.'),
    list.length > 0 && table(['Class', 'Verdict', '#Requests'], list.map(c => {
      const href = link({...NONE, class: c.class, outcome: c.outcome});
      return {href, cells: [[h('a', {class: 'mono', href, 'data-k': c.class, onclick: toList}, c.class), h('div', {class: 'muted'}, explainClass(c.class))], chip(c.outcome), count(c.count)]};
    })),
    !list.length && !o.totals.match && empty('No requests in this range.'),
  ];
}

export function subjects(o) {
  if (!o.subjects.length) return empty('No requests in this range.');
  const most = Math.max(...o.subjects.map(x => x.requests));
  return table(['Subject', '#Requests', '#Forbidden', '#Drift'], o.subjects.map(x => {
    const href = x.subject && subjectOf(x.subject);
    const only = (n, filter, what, cls) => x.subject && n ? h('a', {href: link({...NONE, subject: x.subject, ...filter}), class: 'figure ' + cls, 'data-k': what + x.subject, 'data-tip': `List ${what} below`, onclick: toList}, count(n)) : h('span', {class: 'muted'}, count(n));
    return {href, cells: [
      h('div', {class: 'share'}, href ? h('a', {href, 'data-k': 'u' + x.subject}, name(x.subject, 90)) : h('span', {class: 'muted'}, '(no user recorded)'), h('i', {style: `width:${100 * x.requests / most}%`})),
      only(x.requests, {}, 'its requests', ''), only(x.forbidden, {decision: 'forbid'}, 'what it was refused', ''), only(x.drift, {outcome: 'drift'}, 'where the replay disagrees', 'bad')]};
  }));
}
