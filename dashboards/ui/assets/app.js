// The shell of the page: it knows the clusters, shows where the server stands, and hands the
// address to a view, and to the drawer beside it. A view is an object {title, scoped, mount(root)};
// mount returns {update(params, cluster, background), unmount()}. See README.md for how to add one.
import {h, swap, count, clean, short, span} from './dom.js';
import {ask} from './api.js';
import {here, lead, replace, visit} from './router.js';
import {learn} from './words.js';
import {RANGES, rangeOf} from './range.js';
import * as tips from './tips.js';
import {drawer} from './views/drawer.js';
import {welcome, unknown} from './views/welcome.js';
import overview from './views/overview.js';
import subjects from './views/subjects.js';
import subject from './views/subject.js';
import findings from './views/findings.js';
import access from './views/access.js';
import lineage from './views/lineage.js';
import verdicts from './views/verdicts.js';

const VIEWS = {'': overview, subjects, subject, findings, access, lineage, verdicts};
const PAGES = [['', 'Overview'], ['subjects', 'Subjects'], ['findings', 'Findings'], ['access', 'Access'], ['verdicts', 'Verdicts']];
// BEAT are the milliseconds between looks at the server; QUIET the beats between looks for new
// events when it is up to date, DEEP those between looks for what comes without them: findings.
const BEAT = 3000, QUIET = 2, DEEP = 6;

const main = document.getElementById('main');
const beside = drawer();
let clusters = null; // null: not yet known
let current = null; // {view, live}
let blank = null; // what is shown instead of a view when there are no events

// show brings the page in line with the address. In the background nothing the reader is
// at may move.
async function show(background) {
  const at = here().view in VIEWS ? here().view : '', view = VIEWS[at];
  if (view.scoped && clusters?.length && !here().params.get('cluster')) {
    // The cluster with the newest data; in the address, so that it does not change by itself.
    replace({cluster: clusters.reduce((a, b) => b.last > a.last ? b : a).name});
  }
  const {params} = here();
  const cluster = clusters?.find(c => c.name === params.get('cluster'));
  drawBar(at, view, params, cluster);
  document.title = [view.title, view.titled?.(params), view.scoped && cluster?.name, 'Retrial'].filter(Boolean).map(s => clean(short(s, 80))).join(' · ');
  if (view.scoped && !cluster) {
    leave();
    beside.close();
    if (background && blank) return blank.refresh();
    if (clusters) main.replaceChildren(...(blank = params.get('cluster') ? unknown(params.get('cluster'), clusters) : welcome()).nodes);
    return;
  }
  blank = null;
  if (current?.view !== view) {
    const moved = current !== null;
    leave();
    main.replaceChildren();
    current = {view, live: view.mount(main)};
    // Who follows a link is at the top of what it leads to, with eyes and with a screen reader.
    if (moved) { scrollTo(0, 0); main.focus({preventScroll: true}); }
  }
  current.live.update(params, cluster, background === true);
  view.scoped ? beside.update(params, cluster) : beside.close();
}

function leave() {
  current?.live.unmount();
  current = null;
}

function drawBar(at, view, params, cluster) {
  swap(document.getElementById('views'), PAGES.map(([to, text]) =>
    h('a', {href: lead(to), 'data-k': 'page-' + to, 'aria-current': (view.page ?? at) === to && 'page'}, text)));
  const select = document.getElementById('cluster');
  const names = (clusters ?? []).map(c => c.name).join('\n');
  if (select.dataset.names !== names) {
    select.dataset.names = names;
    select.replaceChildren(...(clusters ?? []).map(c => h('option', {value: c.name}, c.name)));
  }
  select.disabled = !clusters?.length;
  select.selectedIndex = (clusters ?? []).indexOf(cluster);
  document.querySelector('.brand').setAttribute('href', lead(''));
  select.closest('label').hidden = !view.scoped;
  const range = cluster && rangeOf(cluster, params);
  const chosen = range?.fixed ? '' : params.get('range') ?? 'all';
  const ranges = document.getElementById('ranges');
  ranges.hidden = !view.scoped || !cluster || view.ranged === false;
  swap(ranges, RANGES.map(([id, text, , tip]) => h('button', {'aria-pressed': String(id === chosen), 'data-k': id,
    'data-tip': tip ?? `The last ${text} of what is stored, not of the clock`, onclick: () => visit({range: id === 'all' ? null : id, from: null, to: null, before: null})}, text)));
  document.getElementById('window').textContent = !ranges.hidden && range ? span(range.from, range.to) : '';
}

// look asks for the clusters and redraws when there is something new, or may be: a
// correction changes verdicts without adding an event.
async function look(background, maybe) {
  try {
    const answer = (await ask('clusters')).clusters;
    const news = JSON.stringify(answer) !== JSON.stringify(clusters);
    clusters = answer;
    if (news || maybe || blank || !background) show(background && !(blank && news));
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
    if (s.lag) say('behind', `${count(s.lag)} events to replay`, 'They have arrived and await their verdict. The page follows.');
    else if (behind) say('behind', 'correcting verdicts', 'Policy changes arrived late; the requests they concern are judged again.');
    else say('', 'up to date', 'Everything that has arrived is shown. Version ' + s.version);
    const settling = behind || el.dataset.behind === 'true';
    if (settling || ++beats % QUIET === 0 || !clusters) await look(true, settling || beats % DEEP === 0);
    el.dataset.behind = String(behind);
  } catch {
    say('down', 'server not reached', 'The page shows its last answers and tries again.');
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
  // Another cluster has other times and other subjects.
  const at = here(), kept = at.params.get('range') ? {range: at.params.get('range')} : {};
  location.hash = '#/' + (VIEWS[at.view]?.page ?? at.view) + '?' + new URLSearchParams({cluster: e.target.value, ...kept});
});
document.getElementById('skip').addEventListener('click', e => { e.preventDefault(); main.focus(); });
document.addEventListener('visibilitychange', beat);
addEventListener('hashchange', () => clusters && show());
tips.start();
start();
setInterval(beat, BEAT);
