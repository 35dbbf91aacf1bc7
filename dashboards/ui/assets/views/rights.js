// The answer to "can": every rule that applies to a subject, by the place where it does, with
// the grants it comes from and how often each was used.
import {h, table, name, names, fold, plural, count} from '../dom.js';
import {here} from '../router.js';
import {subjectOf, resourceWord} from '../links.js';
import {through} from './grants.js';
import {asOf} from './forms.js';
import {empty} from './panels.js';

// rights paints it on the access page.
export function rights(a) {
  if (!a) return empty('');
  return [
    h('p', {class: 'said'}, a.subject ? [h('a', {href: subjectOf(a.subject), 'data-k': 'whose'}, name(a.subject, 200)), ' ', asOf(a.at), ' ', groupsOf(a)] : [a.groups?.length > 1 ? 'Members of ' : 'A member of ', names(a.groups), ' ', asOf(a.at)]),
    scopes(a, null, true)];
}

const FROM = {requests: 'those of its latest requests', name: 'which its name implies', unknown: 'which its name implies; those of its requests are not known', asked: 'as asked'};

function groupsOf(a) {
  return h('span', {}, 'In ', h('span', {class: 'muted'}, a.groups?.length ? `${plural(a.groups.length, 'group')}${FROM[a.groupsFrom] ? ', ' + FROM[a.groupsFrom] : ''}: ` : 'no group. '), a.groups?.length > 0 && names(a.groups, 12));
}

// hints say what may be wrong with the question.
export function hints(a) {
  return a.hints?.length ? h('ul', {class: 'plain hints'}, a.hints.map(t => h('li', {}, name(t, 600)))) : null;
}

// missing says what is not known, and so why the answer may lack something.
export function missing(a) {
  const none = a.known === false;
  if (!a.missing?.length && !none) return null;
  return h('div', {class: 'next warn wide'}, h('b', {}, none ? 'The policy is not known. ' : 'There may be more. '), none ? 'No roles and bindings of this cluster are known for that time: supply its state with retrial import --state.' : 'Not known at that time:',
    a.missing?.length > 0 && h('ul', {class: 'plain'}, [a.missing.slice(0, MISSING).map(m => h('li', {}, name(m, 300))), a.missing.length > MISSING && h('li', {class: 'muted'}, `and ${count(a.missing.length - MISSING)} more`)]));
}

// scopes lists the rules place by place. uses, when known, maps a grant to its requests; open
// unfolds the first place even when it is long.
export function scopes(a, uses, open) {
  const list = a.scopes ?? [];
  return [
    a.superuser && h('p', {class: 'next warn wide'}, h('b', {}, 'It may do everything. '), 'Members of system:masters are never asked for a grant.'),
    hints(a), missing(a),
    list.length ? list.map((s, i) => fold('scope' + s.namespace, [h('b', {}, s.namespace ? ['In namespace ', name(s.namespace, 120)] : 'In the whole cluster'),
      h('span', {class: 'muted'}, ` ${plural(s.rules.length, 'rule')} from ${plural(new Set(s.rules.flatMap(r => r.by.map(b => b.binding))).size, 'binding')}`)], s.rules.length <= 8 || open && i === 0, lost(s), ruleTable(s, a.at, uses))) :
      !a.superuser && empty('No rule applies to it.')];
}

// lost names roles that bindings name and that do not exist.
function lost(scope) {
  return scope.missingRoles?.length > 0 && h('p', {class: 'muted'}, 'Its bindings refer to roles that do not exist: ', names(scope.missingRoles), '. Anyone who can create these roles decides what it gets.');
}

const CUT = 12, MISSING = 50; // values of a rule, and unknown objects, that are shown at once

function ruleTable(scope, at, uses) {
  return table(['May', 'On', 'Through'], scope.rules.map((r, i) => {
    const what = {...first(r, scope.namespace), at: here().params.get('at')};
    const by = r.by.map((b, j) => h('div', {}, through(b, what, `${scope.namespace}.${i}.${j}`), b.verbs?.length > 0 && h('span', {class: 'muted small'}, 'only ', names(b.verbs, CUT), uses && ', '), uses && used(uses(b))));
    return {cells: [h('span', {class: 'verb mono'}, names(r.verbs, CUT)), on(r), by.length > 3 ? [by.slice(0, 2), h('details', {'data-k': `by${scope.namespace}.${i}`}, h('summary', {}, `${count(by.length - 2)} more`), by.slice(2))] : by]};
  }), 'rows rights');
}

function used(n) { return n === undefined ? null : h('span', {class: n ? 'muted small' : 'never small'}, n ? `used by ${plural(n, 'request')}` : 'never used'); }

// on is what a rule is about.
export function on(r) {
  if (r.nonResourceURLs?.length) return names(r.nonResourceURLs, CUT);
  const groups = r.apiGroups ?? [''];
  const all = (r.resources ?? []).flatMap(res => { const [a, sub] = String(res).split(/\/(.*)/s); return groups.map(g => resourceWord(g, a, sub)); });
  return [names(all, CUT), r.resourceNames?.length > 0 && h('div', {class: 'muted'}, 'only ', names(r.resourceNames, CUT))];
}

// first is the question "who else can" for the first thing a rule allows.
function first(r, namespace) {
  if (r.nonResourceURLs?.length) return {verb: r.verbs?.[0], path: r.nonResourceURLs[0]};
  if (!r.resources?.length) return {};
  const [res, sub] = String(r.resources[0]).split(/\/(.*)/s);
  return {verb: r.verbs?.[0], resource: resourceWord(r.apiGroups?.[0] ?? '', res, sub), namespace, name: r.resourceNames?.[0]};
}
