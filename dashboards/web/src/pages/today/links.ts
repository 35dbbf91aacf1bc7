// Addresses of what the cards tell of.
import { pathOf, type Changes } from '../../kit/address';
import { userOf } from '../../kit/Rule';

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
