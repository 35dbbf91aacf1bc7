// How grants are drawn: who, through which binding, to which rule of which role.
import type { ReactNode } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { pathOf, useLinks } from '../../kit/address';
import { Name } from '../../kit/Name';
import type { Asked } from '../../kit/request';
import css from './event.module.css';

type Grant = Schemas['VerdictGrantLine'];

/** What is the question that grants answer, and when it was asked. */
export interface What extends Asked {
  at: string;
}

/** Grants draws every way in which something is allowed. held are the subject's rules at that time, where they are known. */
export function Grants({ list, what, held }: { list: Grant[]; what?: What | undefined; held?: Answer<'can'> | undefined }) {
  return <ol className={css.grants}>{list.map((g, i) => <li key={i}><Path grant={g} what={what} rule={ruleOf(held, g)} /></li>)}</ol>;
}

function Path({ grant: g, what, rule }: { grant: Grant; what: What | undefined; rule: string | undefined }) {
  const { to } = useLinks();
  const via = (key: string) => (what?.verb && key ? to('/access', { ...what, via: key }) : undefined);
  const subject = subjectPath(g.subject);
  const who = <Box label={kindOf(g.subject)} href={subject ? to(subject.path, subject.group ? { subject: subject.group, at: what?.at } : {}) : undefined}>{nameOf(g.subject)}</Box>;
  if (!g.binding) return <>{who}<Arrow /><Box label="needs no grant">superuser</Box></>;
  return (
    <>
      {who}<Arrow>bound by</Arrow>
      <Box label={kindOf(g.binding)} href={via(g.binding)}>{nameOf(g.binding)}</Box><Arrow>to</Arrow>
      <Box label={kindOf(g.role)} href={via(g.role)}>{nameOf(g.role)}</Box><Arrow>whose</Arrow>
      <Box label={`rule ${g.rule}`}>{rule ?? 'allows it'}</Box>
    </>
  );
}

/** Arrow leads from one box to the next; its word makes a sentence of the path. */
export function Arrow({ children }: { children?: ReactNode }) {
  return <span className={css.arrow}>{children}</span>;
}

/** Box is one piece of a path. */
export function Box({ label, href, children }: { label: string; href?: string | undefined; children: string }) {
  const inside = <><small><Name plain most={60}>{label}</Name></small><Name most={400}>{children}</Name></>;
  return href ? <a className={css.box} href={href}>{inside}</a> : <span className={css.box}>{inside}</span>;
}

/** kindOf and nameOf are the parts of Kind/name and Kind/namespace/name. */
export function kindOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}

/** nameOf is what follows the kind. */
export function nameOf(key: string): string {
  return key.slice(key.indexOf('/') + 1);
}

/** subjectPath is where a binding's subject leads: a user's page, or what a group can do. */
function subjectPath(key: string): { path: string; group?: string } | null {
  const [kind, name] = [kindOf(key), nameOf(key)];
  if (kind === 'User') return { path: pathOf('subjects', name) };
  if (kind === 'Group') return { path: '/access', group: 'group:' + name };
  return kind === 'ServiceAccount' && name.includes('/') ? { path: pathOf('subjects', 'system:serviceaccount:' + name.replace('/', ':')) } : null;
}

/** ruleOf words the rule that a grant names. */
function ruleOf(held: Answer<'can'> | undefined, g: Grant): string | undefined {
  for (const scope of held?.scopes ?? []) {
    for (const rule of scope.rules ?? []) {
      const by = rule.by?.find((x) => x.binding === g.binding && x.role === g.role && x.rule === g.rule);
      if (by) return worded({ ...rule, verbs: by.verbs ?? rule.verbs });
    }
  }
  return undefined;
}

/** worded writes a rule in a line. */
export function worded(r: { verbs?: string[] | null; resources?: string[] | null; apiGroups?: string[] | null; resourceNames?: string[] | null; nonResourceURLs?: string[] | null }): string {
  const group = (r.apiGroups ?? []).filter(Boolean).join(', ');
  const on = r.resources?.length ? r.resources.join(', ') + (group ? ` of ${group}` : '') : (r.nonResourceURLs ?? []).join(', ');
  return `${(r.verbs ?? []).join(', ')} on ${on}${r.resourceNames?.length ? `, only ${r.resourceNames.join(', ')}` : ''}`;
}
