// Rules and whom they are given to, as RBAC has them.
import type { Schemas } from '../api/ask';
import { Name, Names, Who } from './Name';

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
