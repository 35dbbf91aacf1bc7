// Addresses of what the cards tell of.
import { pathOf, type Changes } from '../../kit/address';
import type { Schemas } from '../../api/ask';
import { userOf } from '../../kit/Rule';
import { quoted } from '../../kit/words';

/** asked are the filters of /explore that select requests as one was: what is folded (*) or empty selects nothing. */
export function asked(
  r: Pick<Schemas['FirstUse'], 'subject' | 'verb' | 'resource' | 'group' | 'subresource' | 'path'> & {
    namespace?: string;
    name?: string;
    code?: number;
  },
): Changes {
  const q = (['group', 'subresource', 'namespace', 'name', 'code'] as const).flatMap((k) => {
    const value = String(r[k] ?? '');
    return value && value !== '0' && !value.includes('*') ? [`${k === 'group' ? 'apiGroup' : k}=${quoted(value)}`] : [];
  });
  const [path, ...folded] = r.path.split('*');
  if (path) q.push(`path${folded.length ? '^=' : '='}${quoted(path)}`);
  return { subject: r.subject, verb: r.verb, resource: r.resource, q: q.join(' ') };
}

/** subjectPage is where a subject of a binding is shown: its path and parameters. */
export function subjectPage(s: { kind: string; namespace?: string; name: string }): [path: string, changes: Changes] {
  if (s.kind === 'Group') return ['/access', { subject: `group:${s.name}` }];
  return [pathOf('subjects', userOf(s)), {}];
}

/** keyed reads Kind/name and Kind/namespace/name. Names of users and groups may have slashes: only accounts have namespaces. */
export function keyed(key: string): { kind: string; namespace?: string; name: string } {
  const [kind = '', ...rest] = key.split('/');
  return kind === 'ServiceAccount' && rest.length > 1
    ? { kind, namespace: rest[0] ?? '', name: rest.slice(1).join('/') }
    : { kind, name: rest.join('/') };
}
