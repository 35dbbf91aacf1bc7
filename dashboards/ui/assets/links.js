// Links between the views. Every one is made of parameters: what an audit event said never
// becomes an address by itself.
import {h, name} from './dom.js';
import {lead} from './router.js';

// subjectOf is the address of a subject's page.
export function subjectOf(user) { return lead('subject', {subject: user}); }

// who shows a user as a link to its page. k tells apart the same user in several places.
export function who(user, most, k) {
  return user ? h('a', {class: 'who', href: subjectOf(user), 'data-k': k}, name(user, most)) : h('span', {class: 'muted'}, '(no user)');
}

// userOf is the user a binding's subject stands for, '' for a group. A subject is written
// Kind/name, a service account Kind/namespace/name.
export function userOf(subject) {
  const [kind, a, b] = parts(subject);
  if (kind === 'User') return a + (b === undefined ? '' : '/' + b);
  return kind === 'ServiceAccount' && b !== undefined ? `system:serviceaccount:${a}:${b}` : '';
}

// subjectLink is where a binding's subject leads: a user's page, or what a group can do.
export function subjectLink(subject, at) {
  const [kind, a, b] = parts(subject), user = userOf(subject);
  if (user) return subjectOf(user);
  return kind === 'Group' ? groupLink(b === undefined ? a : a + '/' + b, at) : null;
}

// groupLink is where a group leads: what it alone can do.
export function groupLink(group, at) { return lead('access', {subject: 'group:' + group, at}); }

function parts(subject) {
  const s = String(subject ?? ''), i = s.indexOf('/');
  const rest = s.slice(i + 1), j = rest.indexOf('/');
  return j < 0 ? [s.slice(0, i), rest] : [s.slice(0, i), rest.slice(0, j), rest.slice(j + 1)];
}

// whoCan is the address that asks who can do something. via keeps those whose grants come
// from one binding or role; all asks in every namespace.
export function whoCan({verb, resource, namespace, name: object, path, at, via, all}) {
  return lead('access', {verb, resource, namespace, name: object, path, at, via, all});
}

// asked is what a request asked for, from its verb and address as the apiserver reads them,
// in the words of "who can".
export function asked(verb, uri) {
  const path = String(uri ?? '').split('?')[0];
  const seg = path.split('/').slice(1).map(s => { try { return decodeURIComponent(s); } catch { return s; } });
  const group = seg[0] === 'apis' ? seg[1] : '';
  let rest = seg[0] === 'api' ? seg.slice(2) : seg[0] === 'apis' ? seg.slice(3) : [];
  if (rest[0] === 'watch' || rest[0] === 'proxy') rest = rest.slice(1);
  if (!rest[0]) return {verb, path};
  let namespace;
  if (rest[0] === 'namespaces' && rest[1]) {
    namespace = rest[1];
    if (rest[2] && !['status', 'finalize'].includes(rest[2])) rest = rest.slice(2);
  }
  return {verb, namespace, name: rest[1], resource: resourceWord(group, rest[0], rest[2])};
}

// resourceWord writes a resource as kubectl takes it: deployments.apps/scale.
export function resourceWord(group, resource, subresource) {
  return resource + (group ? '.' + group : '') + (subresource ? '/' + subresource : '');
}
