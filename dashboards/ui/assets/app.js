// The shell of the page: it knows the clusters, shows where the server stands, and hands the
// address to a view. A view is an object {title, scoped, mount(root, shell)}; mount returns
// {update(params, cluster, background), unmount()}. See README.md for how to add one.
import {h, swap, count, clean, time, span} from './dom.js';
import {ask} from './api.js';
import {here, link, replace, visit} from './router.js';
import {learn} from './words.js';
import {RANGES, rangeOf} from './range.js';
import * as tips from './tips.js';
import overview from './views/overview.js';
import verdicts from './views/verdicts.js';

const VIEWS = {'': overview, verdicts};
const BEAT = 3000, QUIET = 2; // milliseconds between looks at the server; beats between looks for news when it is up to date

const main = document.getElementById('main');
let clusters = null; // null: not yet known
let current = null; // {view, live}

// show brings the page in line with the address. In the background nothing the reader is
// at may move.
async function show(background) {
  const view = VIEWS[here().view] ?? VIEWS[''];
  if (view.scoped && clusters?.length && !here().params.get('cluster')) {
    // The cluster with the newest data; in the address, so that it does not change by itself.
    replace({cluster: clusters.reduce((a, b) => b.last > a.last ? b : a).name});
  }
  const {params} = here();
  const cluster = clusters?.find(c => c.name === params.get('cluster'));
  drawBar(view, params, cluster);
  document.title = [view.title, view.scoped && cluster?.name, 'Retrial'].filter(Boolean).map(clean).join(' · ');
  if (view.scoped && !cluster) {
    current?.live.unmount();
    current = null;
    if (clusters) main.replaceChildren(clusters.length ? unknown(params.get('cluster')) : welcome());
    return;
  }
  if (current?.view !== view) {
    current?.live.unmount();
    main.replaceChildren();
    current = {view, live: view.mount(main)};
  }
  current.live.update(params, cluster, background === true);
}

function drawBar(view, params, cluster) {
  const select = document.getElementById('cluster');
  const names = (clusters ?? []).map(c => c.name).join('\n');
  if (select.dataset.names !== names) {
    select.dataset.names = names;
    select.replaceChildren(...(clusters ?? []).map(c => h('option', {value: c.name}, c.name)));
  }
  select.disabled = !clusters?.length;
  select.selectedIndex = (clusters ?? []).indexOf(cluster);
  document.querySelector('.brand').setAttribute('href', cluster ? '#/?' + new URLSearchParams({cluster: cluster.name}) : '#/');
  select.closest('label').hidden = !view.scoped;
  const range = cluster && rangeOf(cluster, params);
  const chosen = range?.fixed ? '' : params.get('range') ?? 'all';
  const ranges = document.getElementById('ranges');
  ranges.hidden = !view.scoped || !cluster;
  swap(ranges, RANGES.map(([id, text, , tip]) => h('button', {'aria-pressed': String(id === chosen), 'data-k': id,
    'data-tip': tip ?? `The last ${text} of what is stored, not of the clock`, onclick: () => visit({range: id === 'all' ? null : id, from: null, to: null, before: null})}, text)));
  document.getElementById('window').textContent = view.scoped && range ? span(range.from, range.to) : '';
}

function welcome() {
  return h('section', {class: 'card welcome'}, h('h2', {}, 'No events yet'),
    h('p', {}, 'Retrial decides every request of a Kubernetes audit log a second time and compares. It needs a log: let an apiserver send it, or import a recorded one.'),
    h('h3', {}, 'A live cluster'), h('pre', {}, 'retrial cluster add NAME'),
    h('p', {class: 'muted'}, 'makes a certificate and the file for the apiserver’s --audit-webhook-config-file.'),
    h('h3', {}, 'A recorded log'), h('pre', {}, lines('kubectl get roles,rolebindings,clusterroles,clusterrolebindings,namespaces,serviceaccounts -A -o json > state.json', 'retrial import --cluster NAME --state state.json audit.log')),
    h('p', {class: 'muted'}, 'This page shows them as soon as the first batch is stored.'));
}
function lines(...list) { return list.flatMap((l, i) => i ? [h('br'), l] : [l]); }

function unknown(name) {
  return h('section', {class: 'card welcome'}, h('h2', {}, 'No such cluster'),
    h('p', {}, 'There are no events of a cluster named ', h('bdi', {class: 'mono'}, name), '. There are some of: '),
    h('ul', {class: 'plain'}, clusters.map(c => h('li', {}, h('a', {href: '#/?cluster=' + encodeURIComponent(c.name)}, c.name), h('span', {class: 'muted'}, ` ${count(c.events)} events, until ${time(c.last, true)} UTC`)))));
}

// look asks for the clusters and redraws when there is something new, or may be: a
// correction changes verdicts without adding an event.
async function look(background, maybe) {
  try {
    const answer = (await ask('clusters')).clusters;
    const news = JSON.stringify(answer) !== JSON.stringify(clusters);
    clusters = answer;
    if (news || maybe || !background) show(background);
  } catch (err) {
    if (clusters) return; // what is shown stays; the status tells
    main.replaceChildren(h('section', {class: 'card error'}, h('h2', {}, 'Nothing can be shown'), h('p', {}, err.message), h('button', {onclick: start}, 'Try again')));
  }
}

// beat shows where the server stands, and looks for news while there are some to expect.
let beats = 0, busy = false;
async function beat() {
  if (busy || document.hidden) return;
  busy = true;
  const el = document.getElementById('status');
  const say = (cls, text, tip) => {
    if (el.textContent === text) return;
    el.className = 'status ' + cls;
    el.textContent = text;
    el.dataset.tip = tip;
  };
  try {
    const s = await ask('status');
    const behind = s.lag + s.policyLag + s.corrections > 0;
    if (s.lag) say('behind', `${count(s.lag)} events to replay`, 'They have arrived and wait for their verdict. The page follows.');
    else if (behind) say('behind', 'correcting verdicts', 'Policy changes arrived late; the requests they concern are judged again.');
    else say('', 'up to date', 'Everything that has arrived is shown. Version ' + s.version);
    const settling = behind || el.dataset.behind === 'true';
    if (settling || ++beats % QUIET === 0 || !clusters) await look(true, settling);
    el.dataset.behind = String(behind);
  } catch {
    say('down', 'server not reached', 'The page shows what it knew last and tries again.');
  }
  busy = false;
}

async function start() {
  main.replaceChildren(h('div', {class: 'card'}, h('div', {class: 'loading'})));
  try {
    learn(await ask('classes'));
  } catch { /* look says what is wrong */ }
  await look(false);
  beat();
}

document.getElementById('cluster').addEventListener('change', e => {
  location.hash = link({cluster: e.target.value, from: null, to: null, before: null, why: null, request: null, user: null, class: null});
});
document.getElementById('skip').addEventListener('click', e => { e.preventDefault(); main.focus(); });
document.addEventListener('visibilitychange', beat);
addEventListener('hashchange', () => clusters && show());
tips.start();
start();
setInterval(beat, BEAT);
