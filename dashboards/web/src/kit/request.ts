// What a request asked for, from its verb and address as the apiserver reads them.
import type { Changes } from './address';
import { quoted } from './words';

/** Asked is a request in the words of "who can". A request for no resource has a path alone. */
export interface Asked {
  verb: string;
  /** resource as kubectl takes it: deployments.apps/scale. */
  resource?: string;
  namespace?: string;
  name?: string;
  path?: string;
}

/** asked reads an address. */
export function asked(verb: string, uri: string): Asked {
  const path = uri.split('?')[0] ?? '';
  const segments = path.split('/').slice(1).map(decoded);
  const group = segments[0] === 'apis' ? (segments[1] ?? '') : '';
  let rest = segments[0] === 'api' ? segments.slice(2) : segments[0] === 'apis' ? segments.slice(3) : [];
  if (rest[0] === 'watch' || rest[0] === 'proxy') rest = rest.slice(1);
  if (!rest[0]) return { verb, path };
  let namespace: string | undefined;
  if (rest[0] === 'namespaces' && rest[1]) {
    namespace = rest[1];
    if (rest[2] && !['status', 'finalize'].includes(rest[2])) rest = rest.slice(2);
  }
  const [resource = '', name, sub] = rest;
  return { verb, namespace, name, resource: whatOf({ resource, group, subresource: sub }) };
}

/** Counted is what requests are counted by. */
export interface Counted {
  resource: string;
  group?: string;
  subresource?: string | undefined;
  path?: string;
}

/** whatOf names what requests were about, as kubectl takes it, deployments.apps/scale; of no resource, it is the path. */
export function whatOf({ resource, group, subresource, path }: Counted): string {
  return resource ? resource + (group ? `.${group}` : '') + (subresource ? `/${subresource}` : '') : (path ?? '');
}

/** partsOf is the inverse of whatOf. */
export function partsOf(what: string): Counted {
  if (what.startsWith('/')) return { resource: '', path: what };
  const [, resource = '', group, subresource] = /^([^./]*)(?:\.([^/]*))?(?:\/(.*))?$/s.exec(what) ?? [];
  return { resource, group: group ?? '', subresource: subresource ?? '' };
}

/** filtersOf are the parameters of /explore that select requests as one was. Generated parts of names are folded to * in counts: what
 *  has some selects nothing, nor does what is empty. */
export function filtersOf(r: Counted & { subject: string; verb: string; namespace?: string | undefined; name?: string; code?: number }): Changes {
  const q = (['group', 'subresource', 'namespace', 'name', 'code'] as const).flatMap((k) => {
    const value = String(r[k] ?? '');
    return value && value !== '0' && !value.includes('*') ? [`${k === 'group' ? 'apiGroup' : k}=${quoted(value)}`] : [];
  });
  const [path, ...folded] = r.resource ? [] : (r.path ?? '').split('*');
  if (path === '(other)') q.push('resource='); // paths that are not told apart in counts
  else if (path) q.push(`path${folded.length ? '^=' : '='}${quoted(path)}`);
  if (!r.subject) q.push('subject='); // nobody was authenticated
  return { subject: r.subject, verb: r.verb, resource: r.resource, q: q.join(' ') };
}

function decoded(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

/** subjectOf takes sa/NAMESPACE:NAME and user/NAME for a user name, as the commands do. */
export function subjectOf(text: string): string {
  const account = /^(?:sa|serviceaccount)\/([^:/]+)[:/]([^:/]+)$/.exec(text);
  return account ? `system:serviceaccount:${account[1]}:${account[2]}` : text.replace(/^user\//, '');
}

/** accountOf returns NAMESPACE:NAME of a service account's user name; null of any other. */
export function accountOf(user: string): string | null {
  return /^system:serviceaccount:([^:]+:[^:]+)$/.exec(user)?.[1] ?? null;
}
