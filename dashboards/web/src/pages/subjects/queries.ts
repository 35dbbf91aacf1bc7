import { useMemo } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useUses asks who made requests. */
export function useUses() {
  const { cluster, from, to } = useScope();
  return useQuestion('ask', { cluster, question: 'subjects', values: JSON.stringify({ from, to, limit: '1000000' }) });
}

/** useExcess asks what everybody was granted and never used, of everything stored. The first answer in a while takes longer than the rest. */
export function useExcess() {
  const { cluster } = useScope();
  return useQuestion('suggest', { cluster, all: true, includeSystem: true, kept: true });
}

/** useDangers asks who holds what is dangerous, and whether it was used. */
export function useDangers() {
  const { cluster, to } = useScope();
  return useQuestion('dangers', { cluster, at: to, includeSystem: true, limit: 2000 });
}

/** Kind of a subject. */
export type Kind = 'user' | 'account' | 'node' | 'system' | 'group';

/** KINDS and how they are called. */
export const KINDS: Record<Kind, string> = { user: 'user', account: 'service account', node: 'node', system: 'system', group: 'group' };

/** Flag is something dangerous that a subject may do: one of the API's dangers. */
export interface Flag {
  id: string;
  /** text is what it lets somebody do. */
  text: string;
  /** through is the group that has it; '' where a binding names the subject itself. */
  through: string;
  /** unused: the subject, or no member of the group, never used it since anything is stored. */
  unused: boolean;
}

/** Subject is a row. */
export interface Subject {
  /** id is its user name; of a group, 'group:' and its name. */
  id: string;
  name: string;
  kind: Kind;
  /** own: it belongs to Kubernetes itself, and so does every binding that gives it what is dangerous. */
  own: boolean;
  requests: number;
  refused: number;
  last: string | null;
  flags: Flag[];
  /** held is the weight of all that its own bindings grant, excess that of what was never used of it; undefined until known. */
  held?: number;
  excess?: number;
  /** suggested is the change that leaves it what it used; of one that was never seen, bindings are those that name it. */
  suggested?: Schemas['LeastprivSuggestion'];
  bindings?: string[];
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

/** idOf is the row of a holder. */
function idOf(h: { kind: string; name: string; namespace: string }): string {
  return h.kind === 'Group' ? `group:${h.name}` : h.kind === 'ServiceAccount' ? `system:serviceaccount:${h.namespace}:${h.name}` : h.name;
}

/** Known is what has been answered so far. */
interface Known {
  uses: Answer<'ask'> | undefined;
  excess: Answer<'suggest'> | undefined;
  dangers: Answer<'dangers'> | undefined;
}

/** subjectsOf joins the answers to rows. */
export function subjectsOf({ uses, excess, dangers }: Known): Subject[] {
  const all = new Map<string, Subject>();
  const of = (id: string): Subject => {
    let s = all.get(id);
    if (!s)
      all.set(
        id,
        (s = { id, name: id.replace(/^group:/, ''), kind: kindOf(id), own: ownOf(id), requests: 0, refused: 0, last: null, flags: [] }),
      );
    return s;
  };
  for (const [name, requests, refused, , , last] of (uses?.rows ?? []) as unknown as [string, number, number, number, string, string][]) {
    if (name) Object.assign(of(name), { requests, refused, last });
  }
  for (const s of excess?.suggestions ?? [])
    Object.assign(of(s.subject), { own: s.system, held: s.excess.held, excess: s.excess.before, suggested: s });
  for (const u of excess?.unseen ?? []) Object.assign(of(u.subject), { held: u.excess, excess: u.excess, bindings: u.bindings });

  // What is held in several namespaces is one, used when it was in any. Of a group it is known who of its members did.
  const held = new Map<string, Map<string, { ever: number; users: string[] }>>();
  for (const h of dangers?.holders ?? []) {
    const flags = held.get(idOf(h)) ?? new Map<string, { ever: number; users: string[] }>();
    const so = flags.get(h.danger) ?? { ever: 0, users: [] };
    flags.set(h.danger, { ever: so.ever + h.ever, users: [...so.users, ...h.users] });
    held.set(idOf(h), flags);
  }
  const kinds = dangers?.dangers ?? [];
  const groups = new Map((excess?.suggestions ?? []).map((s) => [s.subject, [...new Set(s.groups.flat())]]));
  // What Kubernetes calls its own is not when somebody binds it to what is dangerous.
  for (const h of dangers?.holders ?? []) {
    const s = of(idOf(h));
    if (!h.system) s.own = false;
  }
  for (const s of all.values()) {
    const flags: Flag[] = [];
    for (const { id, text } of kinds) {
      const own = held.get(s.id)?.get(id);
      const through = groups.get(s.id)?.find((g) => held.get(`group:${g}`)?.has(id)) ?? '';
      if (own) flags.push({ id, text, through: '', unused: own.ever === 0 });
      else if (through) flags.push({ id, text, through, unused: !held.get(`group:${through}`)?.get(id)?.users.includes(s.id) });
    }
    s.flags = flags[0]?.id === 'cluster-admin' ? flags.slice(0, 1) : flags;
  }
  return [...all.values()];
}

/** useSubjects joins what is known of all subjects; the first answers are shown before the last are there. */
export function useSubjects() {
  const uses = useUses();
  const excess = useExcess();
  const dangers = useDangers();
  const rows = useMemo(
    () => subjectsOf({ uses: uses.data, excess: excess.data, dangers: dangers.data }),
    [uses.data, excess.data, dangers.data],
  );
  return { rows, uses, excess, dangers };
}
