import { useMemo } from 'react';
import type { Answer } from '../../api/ask';
import { useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useUses asks who made requests. */
export function useUses() {
  const { cluster, from, to } = useScope();
  return useQuestion('ask', { cluster, question: 'subjects', values: JSON.stringify({ from, to, limit: '1000000' }) });
}

/** useExcess asks what everybody was granted and never used. It takes longer than the rest. */
export function useExcess() {
  const { cluster, from, to } = useScope();
  return useQuestion('suggest', { cluster, all: true, includeSystem: true, from, to });
}

/** useWays asks who can become cluster administrator. */
export function useWays() {
  const { cluster, to } = useScope();
  return useQuestion('escalations', { cluster, includeSystem: true, limit: 10_000, at: to });
}

/** useReaders asks who can read Secrets. */
export function useReaders() {
  const { cluster, to } = useScope();
  return useQuestion('who-can', { cluster, verb: 'list', resource: 'secrets', allNamespaces: true, at: to });
}

/** Kind of a subject. */
export type Kind = 'user' | 'account' | 'node' | 'system' | 'group';

/** KINDS and how they are called. */
export const KINDS: Record<Kind, string> = { user: 'user', account: 'service account', node: 'node', system: 'system', group: 'group' };

/** Flag is something dangerous that a subject may do. */
export interface Flag {
  id: string;
  /** through is the group that has it; '' where a binding names the subject itself. */
  through: string;
}

/** FLAGS there are, the worst first, with what each lets somebody do. */
export const FLAGS: Record<string, [label: string, meaning: string]> = {
  'cluster-admin': ['cluster-admin', 'may do everything'],
  escalate: ['escalate', 'may write roles with more than it holds'],
  bind: ['bind', 'may bind roles that it does not hold'],
  impersonate: ['impersonate', 'may act as others'],
  secrets: ['reads secrets', 'may list Secrets'],
  token: ['makes tokens', 'may issue tokens of service accounts'],
  exec: ['exec', 'may run commands in pods'],
  workload: ['runs pods', 'may run pods as service accounts that hold more'],
  other: ['can become admin', 'has a way to become cluster administrator'],
};

/** Subject is a row. */
export interface Subject {
  /** id is its user name; of a group, 'group:' and its name. */
  id: string;
  name: string;
  kind: Kind;
  /** own: it belongs to Kubernetes itself. */
  own: boolean;
  requests: number;
  refused: number;
  last: string | null;
  flags: Flag[];
  /** held is the weight of all that its own bindings grant, excess that of what was never used of it; undefined until known. */
  held?: number;
  excess?: number;
}

/** kindOf tells by its name what a subject is. */
export function kindOf(name: string): Kind {
  if (name.startsWith('group:')) return 'group';
  if (name.startsWith('system:serviceaccount:')) return 'account';
  if (name.startsWith('system:node:')) return 'node';
  return name.startsWith('system:') ? 'system' : 'user';
}

/** ownOf reports whether a name belongs to Kubernetes itself. */
export function ownOf(name: string): boolean {
  const bare = name.replace(/^group:/, '');
  const account = /^system:serviceaccount:([^:]*):/.exec(bare);
  return account ? (account[1] ?? '').startsWith('kube-') : bare.startsWith('system:');
}

/** Node of a way or holder of a right, as its user name. */
function userOf(n: { kind: string; name: string; namespace?: string }): string {
  return n.kind === 'Group' ? `group:${n.name}` : n.kind === 'ServiceAccount' ? `system:serviceaccount:${n.namespace}:${n.name}` : n.name;
}

/** EDGES of ways to more rights (docs/escalations.md) and the flags they are. */
function flagOf(edge: string): string {
  return edge in FLAGS ? edge : /impersonate/.test(edge) ? 'impersonate' : /bind/.test(edge) ? 'bind' : /escalate|aggregat/.test(edge) ? 'escalate' : /token/.test(edge) ? 'token' : /exec|attach|portforward|proxy/.test(edge) ? 'exec' : /secret/.test(edge) ? 'secrets' : /pod|workload|run/.test(edge) ? 'workload' : 'other';
}

/** Known is what has been answered so far. */
interface Known {
  uses: Answer<'ask'> | undefined;
  excess: Answer<'suggest'> | undefined;
  ways: Answer<'escalations'> | undefined;
  readers: Answer<'who-can'> | undefined;
}

/** subjectsOf joins the answers to rows. */
export function subjectsOf({ uses, excess, ways, readers }: Known): Subject[] {
  const all = new Map<string, Subject>();
  const of = (id: string): Subject => {
    let s = all.get(id);
    if (!s) all.set(id, (s = { id, name: id.replace(/^group:/, ''), kind: kindOf(id), own: ownOf(id), requests: 0, refused: 0, last: null, flags: [] }));
    return s;
  };
  for (const [name, requests, refused, , , last] of (uses?.rows ?? []) as unknown as [string, number, number, number, string, string][]) {
    if (name) Object.assign(of(name), { requests, refused, last });
  }
  for (const s of excess?.suggestions ?? []) Object.assign(of(s.subject), { own: s.system, held: s.excess.held, excess: s.excess.before });
  for (const u of excess?.unseen ?? []) Object.assign(of(u.subject), { held: u.excess, excess: u.excess });

  const held = new Map<string, Set<string>>(); // flags by holder
  const hold = (id: string, flag: string) => held.set(id, (held.get(id) ?? new Set()).add(flag));
  for (const w of ways?.paths ?? []) if (w.from.name !== 'system:masters') hold(userOf(w.from), w.steps?.length ? flagOf(w.steps[0]?.edge ?? '') : 'cluster-admin');
  for (const h of readers?.subjects ?? []) if (h.name !== 'system:masters') hold(userOf(h), 'secrets');
  const groups = new Map((excess?.suggestions ?? []).map((s) => [s.subject, [...new Set(s.groups.flat())]]));
  const worst = Object.keys(FLAGS);
  for (const id of held.keys()) of(id);
  for (const s of all.values()) {
    const flags = new Map<string, Flag>();
    for (const g of groups.get(s.id) ?? []) for (const id of held.get(`group:${g}`) ?? []) flags.set(id, { id, through: g });
    for (const id of held.get(s.id) ?? []) flags.set(id, { id, through: '' });
    s.flags = flags.has('cluster-admin') ? [flags.get('cluster-admin') as Flag] : [...flags.values()].sort((a, b) => worst.indexOf(a.id) - worst.indexOf(b.id));
  }
  return [...all.values()];
}

/** useSubjects joins what is known of all subjects; the first answers are shown before the last are there. */
export function useSubjects() {
  const uses = useUses();
  const excess = useExcess();
  const ways = useWays();
  const readers = useReaders();
  const rows = useMemo(() => subjectsOf({ uses: uses.data, excess: excess.data, ways: ways.data, readers: readers.data }), [uses.data, excess.data, ways.data, readers.data]);
  return { rows, uses, excess, ways, readers };
}
