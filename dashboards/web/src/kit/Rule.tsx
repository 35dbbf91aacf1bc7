// Rules and whom they are given to, as RBAC has them.
import type { ReactNode } from 'react';
import type { Schemas } from '../api/ask';
import { Name, Names, Who } from './Name';
import { Tag } from './Tag';
import css from './rule.module.css';

/** On shows what a rule is about: resources as kubectl takes them, or paths. */
export function On({ rule: r }: { rule: Schemas['Rule'] }) {
  if (r.nonResourceURLs?.length) return <Names list={r.nonResourceURLs} most={10} />;
  const all = (r.resources ?? []).flatMap((res) => {
    const [plain = '', sub] = res.split('/', 2);
    return (r.apiGroups ?? ['']).map((g) => plain + (g && `.${g}`) + (sub ? `/${sub}` : ''));
  });
  return (
    <>
      <Names list={all} most={10} />
      {(r.resourceNames?.length ?? 0) > 0 && <span className="soft"> only <Names list={r.resourceNames} most={6} /></span>}
    </>
  );
}

/** Person shows a subject of a binding; users and service accounts lead to their page. */
export function Person({ of: s }: { of: { kind: string; namespace: string; name: string } }) {
  if (s.kind === 'Group') return <><span className="soft">group </span><Name most={100}>{s.name}</Name></>;
  return <Who subject={userOf(s)} most={100} />;
}

/** userOf is the user name of a user or service account. */
export function userOf(s: { kind: string; namespace?: string; name: string }): string {
  return s.kind === 'ServiceAccount' ? `system:serviceaccount:${s.namespace}:${s.name}` : s.name;
}

/** ChangedRules lists what a subject lost and gained, so many rules at once; more says how many there are beyond. */
export function ChangedRules({ scopes, most, more }: { scopes: Schemas['ChangedScope'][]; most: number; more: (n: number) => ReactNode }) {
  const rules = scopes.flatMap(({ lost, gained, namespace: where }) => [
    ...lost.map((rule) => ({ rule, where, gained: false })),
    ...gained.map((rule) => ({ rule, where, gained: true })),
  ]);
  return (
    <>
      <ul className={css.rules}>
        {rules.slice(0, most).map(({ rule, where, gained }, i) => (
          <li key={i}>
            <Tag tone={gained ? 'warn' : 'good'}>{gained ? '+ gained' : '− lost'}</Tag>
            <span>
              <Names list={rule.verbs} most={8} /> <span className="soft">on</span> <On rule={rule} />{' '}
              <span className="soft">{where ? <>in <Name most={80}>{where}</Name></> : 'everywhere'}</span>
            </span>
          </li>
        ))}
      </ul>
      {scopes.some((scope) => scope.tooLarge) && <p className="soft">There are too many rules to compare all of them.</p>}
      {rules.length > most && more(rules.length - most)}
    </>
  );
}
