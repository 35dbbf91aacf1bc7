// The first page: what happened on a cluster, how the replica's decisions compare with the
// recorded ones, and why each request was decided as it was. State lives in the address
// (#/?cluster=…&from=…), so every view is a link.
import {h, card, table, count, percent, time, clean, go} from './dom.js';
import {volume} from './chart.js';
import {why} from './why.js';

const OUTCOMES = ['match', 'drift', 'ambiguous', 'indeterminate', 'not_judged'];
const RANGES = [['all', 'All'], ['7d', '7 d', 7 * 86400], ['24h', '24 h', 86400], ['1h', '1 h', 3600], ['15m', '15 min', 900]];
const main = document.getElementById('main');
const drawer = document.getElementById('drawer');
let clusters = [];
let drawn = 0; // counts draws, so that a slow answer never paints over a newer one

async function api(path, params) {
  const url = new URL('api/v1/' + path, document.baseURI);
  for (const [k, v] of Object.entries(params ?? {})) if (v) url.searchParams.set(k, v);
  const res = await fetch(url, {headers: {Accept: 'application/json'}});
  if (!res.ok) throw new Error((await res.text()).trim() || `the server answered ${res.status}`);
  return res.json();
}

function state() { return new URLSearchParams(location.hash.replace(/^#\/?\??/, '')); }

// link returns the address of the current view with some values changed; null removes one.
function link(changes) {
  const s = state();
  for (const [k, v] of Object.entries(changes)) v === null || v === '' ? s.delete(k) : s.set(k, v);
  return '#/?' + s;
}
function visit(changes) { location.hash = link(changes); }

// windowOf turns the chosen range into instants. Ranges end at the newest event, not at
// the clock: a recording from last month opens on last month.
function windowOf(cluster, s) {
  if (s.get('from')) return [new Date(s.get('from')), new Date(s.get('to'))];
  const last = new Date(new Date(cluster.last).getTime() + 1000);
  const range = RANGES.find(r => r[0] === (s.get('range') ?? 'all')) ?? RANGES[0];
  const first = new Date(cluster.first);
  return [range[2] ? new Date(Math.max(first, last - range[2] * 1000)) : first, last];
}

async function draw() {
  const mine = ++drawn;
  const s = state();
  try {
    clusters = (await api('clusters')).clusters;
    if (mine !== drawn) return;
    const cluster = clusters.find(c => c.name === s.get('cluster')) ?? clusters[0];
    drawBar(cluster, s);
    if (!cluster) { main.replaceChildren(welcome()); return; }
    const [from, to] = windowOf(cluster, s);
    const where = {cluster: cluster.name, from: from.toISOString(), to: to.toISOString()};
    document.getElementById('window').textContent = `${time(from, true)} – ${time(to, true)} UTC`;
    const [overview, events] = await Promise.all([api('overview', where), api('events', {...where, ...filters(s)})]);
    if (mine !== drawn) return;
    main.replaceChildren(
      tiles(overview.totals),
      card('w8', 'Events over time', overview.volume.length ? volume(overview.volume, overview.bucketSeconds, (a, b) => visit({from: a.toISOString(), to: b.toISOString(), range: null})) : empty('No events in this range.')),
      coverage(overview),
      drift(overview),
      subjects(overview),
      latest(events, where, s));
    if (s.get('why')) openWhy(s.get('why'), cluster.name); else drawer.hidden = true;
  } catch (err) {
    if (mine === drawn) main.replaceChildren(h('section', {class: 'card error'}, h('h2', {}, 'This could not be shown'), h('p', {}, err.message), h('button', {onclick: draw}, 'Try again')));
  }
}

function filters(s) {
  return {outcome: s.get('outcome'), class: s.get('class'), user: s.get('user'), decision: s.get('decision'), before: s.get('before')};
}

function drawBar(cluster, s) {
  const select = document.getElementById('cluster');
  select.replaceChildren(...clusters.map(c => h('option', {value: c.name, selected: c === cluster}, c.name)));
  select.onchange = () => { location.hash = '#/?cluster=' + encodeURIComponent(select.value); };
  const chosen = s.get('from') ? '' : s.get('range') ?? 'all';
  document.getElementById('ranges').replaceChildren(...RANGES.map(([id, label]) =>
    h('button', {'aria-pressed': String(id === chosen), onclick: () => visit({range: id, from: null, to: null, before: null})}, label)));
}

function welcome() {
  return h('section', {class: 'card'}, h('h2', {}, 'No events yet'),
    h('p', {}, 'Point an apiserver here or import a recorded log:'),
    h('pre', {}, 'retrial cluster add NAME            # certificate and kubeconfig for --audit-webhook-config-file\nretrial import --cluster NAME --state state.json audit.log'),
    h('p', {class: 'muted'}, 'The page shows them as soon as the first batch is stored.'));
}

function tiles(t) {
  const tile = (label, value, note, cls, changes) => {
    const el = h('div', {class: 'tile ' + (cls ?? '')}, h('b', {}, value), h('span', {}, label), note && h('span', {}, ' · ' + note));
    return changes ? go(el, () => visit({before: null, ...changes})) : el;
  };
  const none = {outcome: null, class: null, user: null, decision: null};
  return h('div', {class: 'tiles'},
    tile('events', count(t.events), '', '', none),
    tile('requests', count(t.requests)),
    tile('agreement', percent(t.match, t.match + t.drift), count(t.match) + ' match', 'match', {...none, outcome: 'match'}),
    tile('drift', count(t.drift), 'recorded ≠ replayed', t.drift ? 'drift' : '', {...none, outcome: 'drift'}),
    tile('forbidden', count(t.forbid), '', '', {...none, decision: 'forbid'}),
    tile('undecided', count(t.ambiguous + t.indeterminate), `${count(t.ambiguous)} ambiguous`, '', {...none, outcome: 'indeterminate'}),
    tile('not judged', count(t.not_judged), 'no decision in the log', '', {...none, outcome: 'not_judged'}));
}

function coverage(o) {
  const t = o.totals;
  const all = OUTCOMES.reduce((s, k) => s + t[k], 0);
  return card('w4', 'Verdict coverage',
    h('div', {class: 'stack'}, OUTCOMES.filter(k => t[k]).map(k => h('i', {class: 'bg-' + k, style: `width:${100 * t[k] / all}%`, title: `${label(k)}: ${count(t[k])}`}))),
    table(['', '#Requests', '#Share'], OUTCOMES.map(k => [h('span', {}, h('i', {class: 'dot bg-' + k}), label(k)), count(t[k]), percent(t[k], all)]),
      n => visit({outcome: OUTCOMES[n], class: null, before: null})),
    o.next ? h('p', {class: 'next'}, h('b', {}, 'Supply next: '), o.next.text, h('span', {class: 'muted'}, ` (${count(o.next.requests)} requests wait for it)`))
      : h('p', {class: 'muted'}, all ? 'Nothing is missing: every request with a recorded decision was decided.' : ''));
}

function drift(o) {
  return card('w6', 'Drift and other findings by class',
    o.classes.length ? table(['Class', 'Outcome', '#Requests'],
      o.classes.map(c => [h('span', {}, h('span', {class: 'mono'}, c.class), h('div', {class: 'muted'}, c.text)), chip(c.outcome), count(c.count)]),
      n => visit({class: o.classes[n].class, outcome: null, before: null})) : empty('None: every judged request is a plain match.'));
}

function subjects(o) {
  return card('w6', 'Top subjects',
    table(['Subject', '#Requests', '#Forbidden', '#Drift'],
      o.subjects.map(x => [h('span', {class: 'mono'}, x.user || '(none)'), count(x.requests), count(x.forbidden), count(x.drift)]),
      n => visit({user: o.subjects[n].user, before: null})));
}

function latest(page, where, s) {
  const current = s.get('outcome');
  const input = h('input', {type: 'search', placeholder: 'Subject, exactly', value: s.get('user') ?? '', 'aria-label': 'Subject'});
  input.addEventListener('change', () => visit({user: input.value, before: null}));
  const bar = h('div', {class: 'filters'}, input,
    OUTCOMES.map(k => h('button', {'aria-pressed': String(current === k), onclick: () => visit({outcome: current === k ? null : k, before: null})}, label(k))),
    s.get('class') && h('button', {'aria-pressed': 'true', onclick: () => visit({class: null})}, s.get('class') + ' ×'),
    s.get('decision') && h('button', {'aria-pressed': 'true', onclick: () => visit({decision: null})}, s.get('decision') + ' ×'));
  const rows = page.events.map(e => [
    h('span', {class: 'muted', title: time(e.time, true) + ' UTC'}, time(e.time)),
    h('span', {class: 'mono'}, e.user || '(none)'),
    h('span', {class: 'mono'}, e.verb || '–', ' ', e.requestURI),
    e.code || '–', e.recorded, e.replayed, chip(e.outcome), h('span', {class: 'muted'}, e.cause || e.class)]);
  return card('', 'Latest events', bar,
    rows.length ? table(['Time (UTC)', 'Subject', 'Request', '#Code', 'Recorded', 'Replayed', 'Verdict', 'Because'], rows, n => visit({why: page.events[n].auditID})) : empty('No event fits these filters.'),
    page.older && h('button', {class: 'more', onclick: () => visit({before: page.older})}, 'Older'),
    s.get('before') && h('button', {class: 'more', onclick: () => visit({before: null})}, 'Newest'));
}

async function openWhy(auditID, cluster) {
  drawer.hidden = false;
  const close = () => visit({why: null});
  drawer.replaceChildren(h('p', {class: 'muted'}, 'Looking up ' + clean(auditID) + ' …'));
  try {
    const answer = await api('why', {auditID, cluster});
    drawer.replaceChildren(h('button', {class: 'close', onclick: close, 'aria-label': 'Close'}, '×'), why(answer.requests, auditID));
  } catch (err) {
    drawer.replaceChildren(h('button', {class: 'close', onclick: close, 'aria-label': 'Close'}, '×'), h('p', {}, err.message));
  }
  drawer.querySelector('button')?.focus();
}

function label(outcome) { return outcome.replace('_', ' '); }
function chip(outcome) { return h('span', {class: 'chip bg-' + outcome}, label(outcome || 'later stage')); }
function empty(text) { return h('p', {class: 'empty'}, text); }

async function watchStatus() {
  const el = document.getElementById('status');
  try {
    const s = await api('status');
    el.className = 'status' + (s.lag ? ' behind' : '');
    el.textContent = s.lag ? `${count(s.lag)} events to replay` : 'up to date';
    if (el.dataset.lag && el.dataset.lag !== String(s.lag) && drawer.hidden) draw();
    el.dataset.lag = s.lag;
  } catch {
    el.className = 'status down';
    el.textContent = 'server not reached';
  }
}

addEventListener('hashchange', draw);
addEventListener('keydown', e => { if (e.key === 'Escape' && !drawer.hidden) visit({why: null}); });
draw();
watchStatus();
setInterval(watchStatus, 3000);
