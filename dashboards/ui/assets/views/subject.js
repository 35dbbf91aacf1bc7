// A subject: who it is, what it did, what it could, what it never did, and the least it needs.
import {h, swap, card, table, name, names, count, percent, time, plural} from '../dom.js';
import {lead, link} from '../router.js';
import {rangeOf} from '../range.js';
import {groupLink, whoCan, resourceWord} from '../links.js';
import {part} from '../part.js';
import {empty} from './panels.js';
import {scopes} from './rights.js';
import {unused, suggestion} from './suggestion.js';

const FEW = 25; // uses that are shown at once

export default {
  title: 'Subject',
  titled: params => params.get('subject'),
  scoped: true,
  page: 'subjects', // where it stands in the navigation
  mount(root) {
    const head = h('section', {class: 'card who-is'});
    const tiles = h('div', {class: 'tiles'});
    const did = card('', 'What it did', 'requests by what they asked for, most frequent first');
    const could = card('', 'What it could', 'every rule that applies to it, and where it comes from');
    const never = card('', 'What it never did', 'granted by its own bindings and never used, most dangerous first');
    const least = card('', 'The least it needs', 'suggested roles, and the proof');
    const jump = h('p', {class: 'onward jump'}, [['What it did', did], ['What it could', could], ['What it never did', never], ['The least it needs', least]].map(([text, c]) =>
      h('button', {class: 'plainly', 'data-k': 'jump' + text, onclick: () => { c.el.scrollIntoView({block: 'start'}); c.el.querySelector('h2').focus({preventScroll: true}); }}, text)));
    for (const c of [did, could, never, least]) c.el.querySelector('h2').setAttribute('tabindex', '-1');
    root.append(head, tiles, did.el, could.el, never.el, least.el);

    const known = {}; // the answers by route
    let params = new URLSearchParams(), cluster = null;
    const drawHead = () => {
      swap(head, whoIs(params, known), jump);
      swap(tiles, tilesOf(params, known));
    };
    const learnt = (route, also = () => {}) => ({onAnswer: answer => { known[route] = answer; also(); drawHead(); }});
    const redraw = () => could.body.firstChild && known.can && swap(could.body, could_(known.can));
    const could_ = answer => scopes(answer, usesOf(known.subject));
    const parts = {
      subject: part(did.body, 'subject', answer => answer ? doings(answer, params) : empty('The address names no subject.'), learnt('subject', redraw)),
      can: part(could.body, 'can', answer => answer ? could_(answer) : empty(''), learnt('can')),
      suggest: part(least.body, 'suggest', (answer, where) => {
        const s = answer?.suggestions?.[0];
        swap(never.body, s ? unused(s) : empty(answer ? 'RBAC decided nothing about it in this range.' : ''));
        return s ? suggestion(s, params, cluster, params.get('range') || params.get('from') ? where : {}) : empty(answer ? 'There is nothing to suggest: RBAC decided nothing about it in this range.' : '');
      }, {onAnswer: answer => {
        known.suggest = answer;
        if (!answer) swap(never.body, empty('Not known: see the message below.'));
        drawHead();
      }}),
    };

    return {
      update(now, of, background) {
        params = now;
        cluster = of;
        const user = params.get('subject'), range = rangeOf(of, params);
        const from = range.from.toISOString(), to = range.to.toISOString();
        if (!background) drawHead();
        parts.subject.update(user && {cluster: of.name, subject: user, from, to}, background);
        parts.can.update(user && {cluster: of.name, subject: 'user:' + user, at: to}, background);
        parts.suggest.update(user && {cluster: of.name, subject: user, from, to, includeSystem: 'true'}, background);
      },
      unmount() { for (const p of Object.values(parts)) p.stop(); },
    };
  },
};

// kindOf words what a user name stands for.
function kindOf(user) {
  const sa = /^system:serviceaccount:([^:]*):(.*)$/s.exec(user);
  if (sa) return ['service account', [' ', name(sa[2], 200), ' of namespace ', name(sa[1], 200)]];
  if (user.startsWith('system:node:')) return ['node', [' ', name(user.slice('system:node:'.length), 200)]];
  if (user === 'system:anonymous') return ['anonymous', ' callers without credentials'];
  return user.startsWith('system:') ? ['component', ' of Kubernetes'] : ['user', ''];
}

function whoIs(params, {subject, can}) {
  const user = params.get('subject') ?? '';
  const [kind, more] = kindOf(user);
  const sets = subject?.groups ?? (can?.groups ? [can.groups] : []);
  return [
    h('h1', {}, name(user, 400)),
    h('p', {}, h('span', {class: 'chip plain'}, kind), more, (can?.superuser) && [' ', h('span', {class: 'chip s-critical'}, 'system:masters: may do everything')]),
    sets.length > 0 && h('p', {}, h('span', {class: 'muted'}, sets.length > 1 ? `Seen with ${plural(sets.length, 'set')} of groups: ` : subject?.groupsFrom === 'name' ? 'Groups that its name implies: ' : 'Groups: '), sets.slice(0, 4).map((g, i) => [i > 0 && h('span', {class: 'muted'}, ' · '), names(g, 12, s => h('a', {class: 'who', href: groupLink(s), 'data-k': `grp${i}.${s}`}, name(s, 120)))]), sets.length > 4 && h('span', {class: 'muted'}, ` and ${sets.length - 4} more`)),
    h('p', {class: 'onward'}, h('a', {href: lead('', {subject: user}), 'data-k': 'its-requests'}, 'Its requests, one by one'), h('a', {href: lead('findings', {subject: user}), 'data-k': 'its-findings'}, 'Findings about it'), h('a', {href: lead('lineage', {subject: user}), 'data-k': 'its-credentials'}, 'Its credentials'), h('a', {href: lead('access', {subject: 'user:' + user}), 'data-k': 'its-access'}, 'What it can do at another time')),
  ];
}

// tilesOf are the numbers, each as soon as it is known.
function tilesOf(params, {subject: s, can, suggest}) {
  const user = params.get('subject'), own = suggest?.suggestions?.[0];
  const rules = can?.scopes?.reduce((n, x) => n + x.rules.length, 0);
  const bindings = can && new Set((can.scopes ?? []).flatMap(x => x.rules.flatMap(r => r.by.map(b => b.binding)))).size;
  const tile = (title, value, note, tip, href, cls = '') => h(href ? 'a' : 'div', {class: 'tile ' + cls, href: href || null, 'data-k': href && 'tile' + title, 'data-tip': tip}, h('span', {}, title), h('b', {class: value === undefined ? 'muted' : ''}, value ?? '–'), h('small', {}, value === undefined ? ' ' : note));
  return [
    tile('Requests', s && count(s.requests), s?.first ? days(s.first, s.last) : 'none in this range', 'Requests authorized as this subject', s?.requests && lead('', {subject: user})),
    tile('Forbidden', s && count(s.forbidden), s && percent(s.forbidden, s.requests) + ' of its requests', 'Requests that the apiserver refused for lack of permission', s?.forbidden && lead('', {subject: user, decision: 'forbid'})),
    tile('Drift', s && count(s.drift), 'replay disagrees', 'Requests on which the replay and the apiserver disagree', s?.drift && lead('', {subject: user, outcome: 'drift'}), s?.drift ? 'bad' : ''),
    tile('Rules', can && (can.superuser ? 'all' : count(rules)), can && (can.superuser ? 'system:masters' : `from ${plural(bindings, 'binding')}`), 'Distinct rules that apply to it, through its groups too'),
    tile('Excess', own && count(own.excess.before), 'granted, never used', 'What its own bindings grant and it never used, weighed by danger'),
    tile('After the change', own && count(own.excess.after), own && (own.apply.length + own.remove.length ? `${plural(own.apply.length, 'object')}, ${plural(own.remove.length, 'removal')}` : 'nothing to change'), 'The excess that is left when the suggestion is applied', null, own && own.excess.before > 0 && own.excess.after === 0 ? 'good' : ''),
    tile('By groups', own && count(own.excess.kept), 'stays with its groups', 'What its groups grant and it never used: the suggestion leaves it'),
  ];
}

function days(first, last) {
  const [a, b] = [first, last].map(t => time(t, true).slice(0, 10));
  return a === b ? 'on ' + a : `${a} – ${b}`;
}

// doings is the table of what it did.
function doings(s, params) {
  if (!s.usage.length) return empty('It made no requests in this range.');
  const whole = params.get('rows') === 'all', list = whole ? s.usage : s.usage.slice(0, FEW);
  return [
    table(['Verb', 'Resource or path', 'Namespace', 'Name', '#Allowed', '#Forbidden', 'First (UTC)', 'Last (UTC)'], list.map((u, i) => {
      // The store folds generated names: *.
      const one = u.name.includes('*') ? '' : u.name;
      const what = u.path ? {verb: u.verb, path: u.path} : {verb: u.verb, resource: resourceWord(u.group, u.resource, u.subresource), namespace: u.namespace, name: one};
      return {cells: [u.verb ? h('span', {class: 'verb mono'}, name(u.verb, 60)) : h('span', {class: 'muted'}, '(not a verb of Kubernetes)'),
        u.verb ? h('a', {class: 'who', href: whoCan(what), 'data-k': 'use' + i, 'data-tip': 'Who else can do this'}, name(u.path || what.resource, 160)) : name(u.path || what.resource, 160),
        u.namespace ? name(u.namespace, 120) : h('span', {class: 'muted nil'}, '–'), u.name ? name(u.name, 120) : h('span', {class: 'muted nil'}, '–'),
        h('span', {class: u.allowed ? '' : 'muted'}, count(u.allowed)), h('span', {class: u.forbidden ? 'bad-code' : 'muted'}, count(u.forbidden)),
        h('time', {}, time(u.first, true)), h('time', {}, time(u.last, true))]};
    }), 'rows uses'),
    s.usage.length > list.length && h('p', {}, h('a', {class: 'button', href: link({rows: 'all'}), 'data-k': 'all-rows'}, `Show all ${count(s.usage.length)}`)),
    s.more && h('p', {class: 'muted'}, `Only the ${count(s.usage.length)} most frequent are counted here.`),
    s.folded > 0 && h('p', {class: 'muted'}, `${count(s.folded)} requests exceed what is counted by name in a day: (other).`),
    s.otherGroups > 0 && h('p', {class: 'muted'}, `${count(s.otherGroups)} requests came with further sets of groups, more than are told apart in a day.`),
    s.untold > 0 && h('p', {class: 'muted'}, `${count(s.untold)} requests of the cluster are of subjects that are not told apart, more than are counted in a day: some may be of this one.`)];
}

// usesOf tells how often a grant was used, undefined when that is not known.
function usesOf(s) {
  if (!s?.rules) return null;
  const key = r => JSON.stringify([r.binding, r.subject, r.rule]);
  const n = new Map(s.rules.map(r => [key(r), r.requests]));
  return g => n.get(key(g));
}
