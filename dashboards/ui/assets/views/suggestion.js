// The least a subject needs: what it never used, the change that takes it away, and the proof.
import {h, table, name, names, count, percent, plural, time, fold} from '../dom.js';
import {visit} from '../router.js';
import {groupLink, whoCan} from '../links.js';
import {change, removals, rollback, word} from '../manifest.js';
import {textBlock, fileName} from '../keep.js';
import {arrow, through} from './grants.js';
import {empty} from './panels.js';

const WEEK = 7 * 86400e3;

// unused lists the rules with what was never used of them.
export function unused(s) {
  if (!s.unused.length) return empty(s.excess.before ? 'Every rule of its own bindings was used.' : 'Nothing: it uses everything its own bindings grant, or it has none.');
  const list = s.unused.map((u, i) => ({cells: [
    h('span', {class: 'weight'}, count(u.excess), h('i', {style: `width:${Math.max(2, 100 * u.excess / Math.max(1, s.unused[0].excess))}%`})),
    [u.tooLarge && !u.unused.length ? 'Too large to weigh' : names(u.unused, 8, g => h('a', {class: 'who', href: whoCan(asks(g, u.binding)), 'data-k': `un${i}.${g}`, 'data-tip': 'Who else can'}, name(g, 120)), u.more ?? 0)],
    [through({...u, subject: ''}, asks(u.unused[0] ?? '', u.binding), 'un' + i),
      h('div', {class: 'muted small'}, u.tooLarge ? 'how much of the rule was used is not known' : u.whole ? 'nothing of the rule was used' : 'other parts of the rule were used')]]}));
  const heads = ['#Weight', 'Never used', 'Through'];
  return [table(heads, list.slice(0, 12), 'rows unused'),
    list.length > 12 && fold('unused', `${count(list.length - 12)} more rules`, false, table(heads, list.slice(12), 'rows unused'))];
}

// asks turns "verb resource.group" or "verb /path" of a binding into who else can.
function asks(grant, binding) {
  const [verb, what] = grant.split(/ (.*)/s), at = binding.split('/');
  return what?.startsWith('/') ? {verb, path: what} : {verb, resource: what, namespace: at[0] === 'RoleBinding' ? at[1] : null};
}

// suggestion paints the change with its proof; range has from and to unless it is everything.
export function suggestion(s, params, cluster, range) {
  const changes = s.apply.length + s.remove.length > 0;
  return [
    cautions(s),
    h('div', {class: 'sides'}, h('div', {}, h('h3', {}, 'What it changes'), excess(s)), h('div', {}, h('h3', {}, 'The proof'), proof(s))),
    gaps('What it does not know', s.gaps), gaps('What the cluster’s recording lacks', s.window.gaps),
    keeps(s),
    changes ? blocks(s, params, cluster) : empty('There is nothing to change: none of its own bindings can be removed.'),
    h('h3', {}, 'The same on the command line'),
    textBlock('cli', 'Command', command(s, cluster, range), null),
  ];
}

function gaps(title, list) {
  return list?.length ? [h('h3', {}, title), h('ul', {class: 'plain gaps'}, list.map(g => h('li', {}, name(g, 500))))] : null;
}

// cautions say why it must not simply be applied.
function cautions(s) {
  const length = new Date(s.window.to) - new Date(s.window.from);
  return [
    length < WEEK && h('p', {class: 'next warn wide'}, h('b', {}, `It rests on ${spell(length)}. `), 'What the subject does once a week or once a month is not in it and would be refused.'),
    s.seen === false && h('p', {class: 'next warn wide'}, h('b', {}, 'It made no request in this range. '), 'The recording does not show whether it is needed at all.'),
    s.system && h('p', {class: 'next warn wide'}, h('b', {}, 'This is a subject of Kubernetes itself. '), 'Its roles come back when the apiserver starts; changing them can break the cluster.'),
    !s.proof.holds && h('p', {class: 'next warn wide', role: 'alert'}, h('b', {}, 'The proof does not hold. '), 'Do not apply this as it is.'),
  ];
}

function spell(ms) {
  const m = Math.max(1, Math.round(ms / 60e3));
  return m < 120 ? plural(m, 'minute') : m < 2880 ? plural(Math.round(m / 60), 'hour') : plural(Math.round(m / 1440), 'day');
}

function excess(s) {
  const {before, after, kept} = s.excess, most = Math.max(before, after, 1);
  const bar = (label, n, cls) => [h('dt', {}, label), h('dd', {}, h('span', {class: 'meter'}, h('i', {class: cls, style: `width:${100 * n / most}%`})), h('b', {}, count(n)))];
  return [h('dl', {class: 'bars'}, bar('Excess now', before, 'bg-drift'), bar('afterwards', after, 'bg-match')),
    h('p', {}, before ? `${percent(before - after, before)} of what its own bindings grant and it never used, weighed by danger, is removed.` : 'Its own bindings grant nothing that it never used.'),
    kept > 0 && h('p', {}, `${count(kept)} more is granted by its groups and stays.`),
    h('p', {}, `${plural(s.apply.length, 'object')} to apply, ${plural(s.remove.length, 'binding')} to remove it from.`)];
}

function proof(s) {
  const p = s.proof, w = s.window;
  const fact = (n, text, bad) => h('li', {class: bad ? 'bad' : ''}, h('b', {}, count(n)), ' ', text);
  return [
    h('p', {class: p.holds ? 'holds' : 'fails'}, h('span', {class: 'chip ' + (p.holds ? 'is-match' : 'is-drift')}, p.holds ? 'holds' : 'fails'), ' ',
      p.holds ? 'Replayed against the final state, nothing it used is refused and nothing is newly allowed.' : 'Replayed against the final state, some requests are decided differently.'),
    h('ul', {class: 'facts'},
      fact(p.requests, `allowed requests asked again (${count(p.accesses)} distinct)`), fact(p.refused, 'of them refused', p.refused > 0),
      fact(p.refusals, 'distinct refusals asked again'), fact(p.newlyAllowed, 'of them newly allowed', p.newlyAllowed > 0),
      p.allowedBefore > 0 && fact(p.allowedBefore, 'of them allowed, as they were at another time'),
      p.allowedByKept > 0 && fact(p.allowedByKept, 'of them allowed by its groups in any case'),
      p.implied > 0 && fact(p.implied, 'of them implied by what it needs'),
      p.leftOut > 0 && fact(p.leftOut, 'requests left out: they need a wildcard')),
    h('p', {}, `From ${time(w.from, true)} to ${time(w.to, true)} UTC: ${plural(w.requests, 'request')}, ${percent(w.judged, w.requests)} of them judged.`),
    p.failures?.length > 0 && h('ul', {class: 'plain bad failures'}, p.failures.map(f => h('li', {}, name(f, 400)))),
  ];
}

// keeps names the grants of groups; those that make the change pointless first.
function keeps(s) {
  if (!s.keeps.length) return null;
  const list = [...s.keeps].sort((a, b) => (b.undoes?.length ?? 0) - (a.undoes?.length ?? 0) || b.excess - a.excess);
  const undone = list.filter(k => k.undoes?.length).length;
  return fold('keeps', [h('b', {}, `${plural(list.length, 'grant')} of its groups ${list.length === 1 ? 'stays' : 'stay'}`), undone > 0 && h('span', {class: 'muted'}, `; ${count(undone)} of them still ${undone === 1 ? 'gives' : 'give'} some of what this takes away`)], undone > 0,
    table(['Group', 'Through', '#Relied on', '#Excess', 'Still gives'], list.map((k, i) => ({cells: [
      h('a', {class: 'who', href: groupLink(k.group), 'data-k': 'keep' + i}, name(k.group, 120)),
      h('div', {class: 'through'}, name(k.binding, 160), ' ', arrow(), ' ', name(k.role, 160)),
      count(k.relied), count(k.excess), k.undoes?.length ? names(k.undoes, 6) : h('span', {class: 'muted nil'}, '–')]})), 'rows keeps'));
}

const TABS = [['apply', 'Apply'], ['remove', 'Remove'], ['rollback', 'Roll back']];

// blocks shows one of the three texts; which, is in the address.
function blocks(s, params, cluster) {
  const shown = TABS.some(t => t[0] === params.get('show')) ? params.get('show') : 'apply';
  const file = fileName('retrial', s.subject || 'subject', shown) + (shown === 'remove' ? '.sh' : '.yaml');
  const text = {apply: () => change(s, cluster.name), remove: () => removals(s) || '# nothing to remove\n', rollback: () => rollback(s, cluster.name)}[shown]();
  const told = {apply: 'Objects to apply first; they take nothing away. The removals are at the end, as comments.', remove: 'Commands to run once the objects are applied: only they take something away.', rollback: 'What was there before: apply this to go back.'}[shown];
  return h('div', {class: 'blocks'}, h('h3', {}, 'The change'),
    h('div', {class: 'toggle3', role: 'group', 'aria-label': 'Show'}, TABS.map(([k, t]) => h('button', {'aria-pressed': String(k === shown), 'data-k': 'show' + k, onclick: () => visit({show: k === 'apply' ? null : k})}, t))),
    h('p', {class: 'muted'}, told), textBlock('change', told, text, file));
}

// command is what to type for the same.
function command(s, cluster, range) {
  const length = new Date(s.window.to) - new Date(s.window.from);
  return ['retrial suggest', '--cluster ' + word(cluster.name), '--subject ' + word(s.subject), '-o yaml', range.from && '--from ' + word(range.from), range.to && '--to ' + word(range.to), s.system && '--include-system', s.seen === false && '--include-unseen', length < WEEK && '--force'].filter(Boolean).join(' ') + '\n';
}
