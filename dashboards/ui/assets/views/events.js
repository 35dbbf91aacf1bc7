// The list of requests, newest first, with its filters and pages.
import {h, swap, card, table, name, short, time, plural} from '../dom.js';
import {ask, latest} from '../api.js';
import {link, visit} from '../router.js';
import {subjectOf, who} from '../links.js';
import {rangeOf} from '../range.js';
import {OUTCOMES, chip, decision, explain, explainClass, label, sentence} from '../words.js';
import {empty, failed} from './panels.js';

const TEXTS = [['subject', 'Subject'], ['verb', 'Verb'], ['resource', 'Resource']];
const FILTERS = ['outcome', 'class', 'decision', 'subject', 'verb', 'resource'];

export function eventList() {
  const bar = h('div', {class: 'filters'}), list = h('div', {class: 'list'});
  const {el, body} = card('', 'Requests', 'newest first; choose one to see why it was decided that way');
  el.id = 'requests';
  body.replaceChildren(bar, list);
  list.append(h('div', {class: 'loading'}));
  const newest = latest();
  let shown = '', under = '';

  const load = async (where, params, cluster) => {
    const question = JSON.stringify(where);
    under = question;
    if (question !== shown) list.classList.add('stale');
    try {
      const answer = await newest(signal => ask('events', where, signal));
      if (!answer) return;
      shown = question;
      swap(list, rows(answer, params, rangeOf(cluster, params)));
    } catch (err) {
      if (shown === question) return;
      shown = '';
      swap(list, failed(err, () => load(where, params, cluster)));
    }
    list.classList.remove('stale');
  };

  return {
    el,
    update(params, cluster, background) {
      const range = rangeOf(cluster, params);
      const where = {cluster: cluster.name, from: range.from.toISOString(), to: range.to.toISOString(), before: params.get('before')};
      for (const f of FILTERS) where[f] = params.get(f);
      if (!background || document.activeElement?.tagName !== 'INPUT' || !bar.contains(document.activeElement)) swap(bar, filters(params));
      if (!background) {
        if (JSON.stringify(where) !== under || shown === '') load(where, params, cluster);
        return;
      }
      // News. The reader keeps what is being read: an older page, a row, an answer.
      if (params.get('before')) return;
      const reading = params.get('why') || list.contains(document.activeElement) || list.matches(':hover') || list.getBoundingClientRect().top < 0 || String(getSelection());
      if (!reading) load(where, params, cluster);
      else if (!list.querySelector('.news')) list.prepend(h('button', {class: 'news', 'data-k': 'news', onclick: () => load(where, params, cluster)}, 'Show new requests'));
    },
  };
}

function filters(params) {
  const toggle = (key, value, text, tip) => {
    const on = params.get(key) === value;
    return h('button', {class: 'f-' + value, 'data-k': key + value, 'aria-pressed': String(on), 'data-tip': tip, onclick: () => visit({[key]: on ? null : value, class: key === 'outcome' ? null : params.get('class'), before: null})}, text);
  };
  const field = ([key, text]) => {
    const input = h('input', {type: 'search', 'data-k': key, placeholder: text, 'aria-label': text + ', exactly', 'data-tip': `${text}, written exactly as the log has it`, value: params.get(key) ?? ''});
    // As a property the value is taken as it is; as an attribute it was made readable.
    input.value = params.get(key) ?? '';
    input.addEventListener('change', () => visit({[key]: input.value, before: null}));
    return input;
  };
  const any = FILTERS.some(f => params.get(f));
  return [
    h('div', {class: 'group', role: 'group', 'aria-label': 'Verdict'}, OUTCOMES.map(k => toggle('outcome', k, label(k), explain(k)))),
    h('div', {class: 'group', role: 'group', 'aria-label': 'Recorded decision'}, toggle('decision', 'allow', 'allowed', 'The apiserver recorded: allowed'), toggle('decision', 'forbid', 'forbidden', 'The apiserver recorded: forbidden')),
    h('div', {class: 'group fields'}, TEXTS.map(field)),
    params.get('class') && h('button', {class: 'set', 'data-k': 'class', 'data-tip': 'Remove this filter', onclick: () => visit({class: null, before: null})}, short(params.get('class'), 60) + ' ×'),
    params.get('subject') && h('a', {class: 'button plainly', 'data-k': 'about', href: subjectOf(params.get('subject'))}, 'About this subject'),
    any && h('button', {class: 'plainly', 'data-k': 'clear', onclick: () => visit(Object.fromEntries([...FILTERS, 'before'].map(f => [f, null])))}, 'Clear filters'),
  ];
}

function rows(answer, params, range) {
  const dated = time(range.from, true).slice(0, 10) !== time(new Date(range.to - 1), true).slice(0, 10);
  const at = e => dated ? time(e.time, true).slice(5, 10) + ' ' + time(e.time) : time(e.time);
  const list = answer.events.map(e => {
    // A request without an audit ID cannot be asked about.
    const href = e.auditID && link({why: e.auditID, request: e.request});
    const text = [h('span', {class: 'verb'}, short(e.verb, 30) || '–'), ' ', name(e.requestURI, 220)];
    return {href, cells: [
      h('time', {'data-tip': time(e.time, true) + ' UTC'}, at(e)),
      who(e.subject, 90, 's' + e.request + e.stage),
      href ? h('a', {href, class: 'request', 'data-k': 'r' + e.request + e.stage}, text) : text,
      h('span', {class: e.code >= 400 ? 'bad-code' : 'muted'}, e.code || '–'),
      decision(e.recorded), decision(e.replayed), chip(e.outcome), h('span', {class: 'muted because'}, because(e))]};
  });
  return [
    list.length ? table(['Time (UTC)', 'Subject', 'Request', '#Status', 'Apiserver', 'Replay', 'Verdict', 'Because'], list, 'events') :
      empty(FILTERS.some(f => params.get(f)) ? 'No request matches these filters.' : 'No requests in this range.'),
    h('div', {class: 'pages'},
      params.get('before') && h('a', {class: 'button', 'data-k': 'newest', href: link({before: null})}, '↑ Newest'),
      answer.older && h('a', {class: 'button', 'data-k': 'older', href: link({before: answer.older})}, 'Older ↓')),
  ];
}

// because words the verdict in a few words.
function because(e) {
  if (e.outcome !== 'match') return sentence(short(e.cause, 200)) || explainClass(e.class);
  if (e.replayed === 'forbid') return 'no grant allows it';
  if (e.grantCount) return plural(e.grantCount, 'grant');
  return {masters: 'group system:masters', node: 'node authorizer'}[e.authorizer] ?? '';
}
