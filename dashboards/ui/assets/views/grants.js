// How grants are drawn, everywhere: who, through which binding, to which rule of which role.
// Every piece leads on: a user to its page, a binding or role to who else has it from there.
import {h, name} from '../dom.js';
import {subjectLink, whoCan} from '../links.js';

// grants draws paths in the order they come. what is the question they answer, in the words
// of links.js asked(), with at; k tells apart the same grant in several lists.
export function grants(list, what, k = '') {
  return h('ol', {class: 'grants'}, list.map((g, i) => h('li', {}, path(g, what, k + i))));
}

function path(g, what, k) {
  const via = key => what?.verb && key ? whoCan({...what, via: key}) : null;
  if (!g.binding) return [node('subject', g.subject, subjectLink(g.subject, what?.at), k + 's'), arrow(), node('needs no grant', 'superuser')];
  return [
    node('subject', g.subject, subjectLink(g.subject, what?.at), k + 's'), arrow(),
    node('bound by', g.binding, via(g.binding), k + 'b'), arrow(),
    node(`rule ${g.rule} of`, g.role, via(g.role), k + 'r')];
}

export function arrow() { return h('i', {class: 'arrow', 'aria-hidden': 'true'}, '→'); }

// node is one box of a path.
export function node(label, text, href, k) {
  const inside = [h('small', {}, label), name(text, 400)];
  return href ? h('a', {class: 'node', href, 'data-k': 'g' + k}, inside) : h('span', {class: 'node'}, inside);
}

// through draws a grant in one line of a table: binding, role, and whom the binding names
// when that is not the subject itself.
export function through(g, what, k) {
  const on = (key, kk) => key && what?.verb ? h('a', {href: whoCan({...what, via: key}), 'data-k': 't' + k + kk}, name(key, 120)) : name(key, 120);
  return h('div', {class: 'through'}, on(g.binding, 'b'), ' ', arrow(), ' ', on(g.role, 'r'),
    h('span', {class: 'muted'}, ` rule ${g.rule}`), g.subject?.startsWith('Group/') && [h('span', {class: 'muted'}, ', as '), name(g.subject, 120)]);
}
