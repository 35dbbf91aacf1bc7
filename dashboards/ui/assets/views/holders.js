// The answer to "who can": everybody a grant allows it, each with every grant.
import {h, table, name, plural, count} from '../dom.js';
import {link} from '../router.js';
import {subjectLink, userOf, resourceWord} from '../links.js';
import {through} from './grants.js';
import {asOf} from './forms.js';
import {hints, missing} from './rights.js';
import {empty} from './panels.js';

// holders paints it; via keeps the grants of one binding or role.
export function holders(a, where, params) {
  if (!a) return empty('');
  const via = params.get('via'), whole = params.get('rows') === 'all';
  const all = a.subjects.map(s => ({...s, grants: via ? s.grants.filter(g => g.binding === via || g.role === via) : s.grants})).filter(s => s.grants.length);
  const list = whole ? all : all.slice(0, 100);
  const what = {verb: where.verb, resource: where.resource, namespace: where.namespace, name: where.name, path: where.path, at: where.at, all: params.get('all')};
  return [
    h('p', {class: 'said'}, question(a), ' ', asOf(a.at), ' ', via && [h('a', {class: 'button set', href: link({via: null}), 'data-k': 'via', 'data-tip': 'Remove this filter'}, 'only through ', name(via, 120), ' ×')]),
    hints(a), missing(a),
    all.length ? [
      h('p', {}, h('b', {}, plural(different(all).length, 'subject can', 'subjects can')), ', ', tally(different(all)), '.', a.inNamespaces > 0 && [' ', h('a', {href: link({all: 'yes'}), 'data-k': 'in-all'}, `${count(a.inNamespaces)} more in single namespaces`)]),
      table(['Subject', 'Kind', 'Where', '#Grants', 'Through'], list.map((s, i) => {
        const key = keyOf(s), href = subjectLink(key, where.at);
        return {cells: [href ? h('a', {href, class: 'who', 'data-k': 'h' + i}, name(s.kind === 'ServiceAccount' ? userOf(key) || s.name : s.name, 200)) : name(s.name, 200),
          h('span', {class: 'muted'}, KINDS[s.kind] ?? s.kind), scope(s.scope), count(s.grants.length),
          s.grants.slice(0, 4).map((g, j) => g.binding ? through({...g, subject: ''}, what, i + '.' + j) : h('div', {class: 'muted'}, 'needs no grant: members may do everything'))
            .concat(s.grants.length > 4 ? h('details', {'data-k': 'more' + i}, h('summary', {}, `${count(s.grants.length - 4)} more`), s.grants.slice(4).map((g, j) => through({...g, subject: ''}, what, i + '.' + (j + 4)))) : [])]};
      }), 'rows holders'),
      all.length > list.length && h('p', {}, h('a', {class: 'button', href: link({rows: 'all'}), 'data-k': 'all-rows'}, `Show all ${count(all.length)}`))] :
      [empty(via ? 'Nobody, through that.' : 'Nobody, as far as is known.'), a.inNamespaces > 0 && h('p', {}, h('a', {href: link({all: 'yes'}), 'data-k': 'in-all'}, `${count(a.inNamespaces)} in single namespaces`))]];
}

const KINDS = {User: 'user', Group: 'group', ServiceAccount: 'service account'};

function keyOf(s) { return s.kind === 'ServiceAccount' ? `ServiceAccount/${s.namespace}/${s.name}` : `${s.kind}/${s.name}`; }

// different leaves out those who hold it in several places.
function different(list) { return [...new Map(list.map(s => [keyOf(s), s])).values()]; }

// told says the answer in a few words.
export function told(a) { return a ? `${plural(different(a.subjects).length, 'subject can', 'subjects can')}.` : ''; }

function question(a) {
  return ['Who can ', h('b', {}, name(a.verb, 80)), ' ', name(a.path || resourceWord(a.group, a.resource, a.subresource), 200),
    a.name && [' named ', name(a.name, 120)], a.path ? '' : a.namespace ? [' in namespace ', name(a.namespace, 120)] : a.allNamespaces ? ', in the whole cluster or in any namespace' : ' in the whole cluster', '?'];
}

function tally(list) {
  return Object.entries(KINDS).map(([k, w]) => [list.filter(s => s.kind === k).length, w]).filter(([n]) => n).map(([n, w]) => plural(n, w)).join(', ');
}

function scope(s) {
  if (!s || s === 'cluster') return h('span', {class: 'keep-together'}, 'everywhere');
  const ns = s.startsWith('namespace:') ? s.slice('namespace:'.length) : s;
  return ['namespace ', name(ns, 120)];
}
