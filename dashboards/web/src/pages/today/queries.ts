import { useMemo } from 'react';
import type { Schemas } from '../../api/ask';
import { useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useFindings asks what the detections found in the range. */
export function useFindings() {
  const { cluster, from, to } = useScope();
  return useQuestion('findings', { cluster, from, to, limit: 200 });
}

/** useGaps asks what is known to be missing in the range. */
export function useGaps() {
  const { cluster, from, to } = useScope();
  return useQuestion('completeness', { cluster, from, to });
}

/** newFrom is since when something is new: since the range begins. Where that is all that is stored, there is nothing to compare it
 *  with: then the last day is compared with what was before, or the last third of what is stored. */
export function newFrom(range: { name: string; from: string; to: string }, first: string): string {
  if (range.name === 'fixed' || Date.parse(range.from) > Date.parse(first)) return range.from;
  const [a, b] = [Date.parse(first), Date.parse(range.to)];
  return new Date(b - Math.min(86_400_000, Math.floor((b - a) / 3))).toISOString();
}

/** useNews asks what was done, and what was granted and used, for the first time. since is when that starts. */
export function useNews() {
  const { cluster, to, range, clusters } = useScope();
  const since = newFrom(range, clusters.find((c) => c.name === cluster)?.first ?? range.from);
  return { since, to, asks: useQuestion('first-uses', { cluster, from: since, to, limit: 1000 }) };
}

/** Newcomer is a subject and what it asked for the first time. */
export interface Newcomer {
  subject: string;
  uses: Schemas['FirstUse'][];
}

/** newcomersOf sorts first uses by who made them, who made most first. */
export function newcomersOf(uses: Schemas['FirstUse'][]): Newcomer[] {
  const by = new Map<string, Newcomer>();
  for (const u of uses) {
    const n = by.get(u.subject) ?? { subject: u.subject, uses: [] };
    n.uses.push(u);
    by.set(u.subject, n);
  }
  return [...by.values()].sort((a, b) => b.uses.length - a.uses.length);
}

/** useRefusals asks what was refused, and why. */
export function useRefusals() {
  const { cluster, from, to } = useScope();
  return useQuestion('refusals', { cluster, from, to, limit: 500 });
}

/** Idle is a danger and who holds it and never used it, anywhere. */
export interface Idle {
  id: string;
  text: string;
  holders: Schemas['DangerHolder'][];
}

/** idleOf sorts holders by what they hold, the worst first; who holds it in several namespaces is one. */
export function idleOf(answer: Schemas['DangersAnswer'] | undefined): Idle[] {
  const used = new Set<string>();
  const idle = new Map<string, Schemas['DangerHolder']>();
  for (const h of answer?.holders ?? []) {
    const key = JSON.stringify([h.danger, h.kind, h.namespace, h.name]);
    if (h.ever) used.add(key);
    else if (!idle.has(key)) idle.set(key, h);
  }
  const left = [...idle].filter(([key]) => !used.has(key)).map(([, h]) => h);
  return (answer?.dangers ?? [])
    .map(({ id, text }) => ({ id, text, holders: left.filter((h) => h.danger === id) }))
    .filter((d) => d.holders.length);
}

/** useIdle asks who holds what is dangerous, and did not use it since anything is stored. */
export function useIdle() {
  const { cluster, to } = useScope();
  const asks = useQuestion('dangers', { cluster, at: to, limit: 2000 });
  return { asks, idle: useMemo(() => idleOf(asks.data), [asks.data]) };
}

/** OTHERS leaves out Kubernetes' own subjects, as /explore and the API write it. */
const OTHERS = 'system=no';

/** SECRETS are the requests for Secrets, as /explore takes them, and REFUSED those that were refused by whatever it was. */
export const SECRETS = { resource: 'secrets', q: OTHERS };
export const REFUSED = { q: `refused=yes ${OTHERS}` };

/** useSecrets asks who asked for Secrets. */
export function useSecrets() {
  const { cluster, from, to } = useScope();
  return useQuestion('facets', { cluster, from, to, keys: 'subject', where: JSON.stringify(['resource=secrets', OTHERS]) });
}
