import { useEffect, useMemo } from 'react';
import { usePolicyChanges, useQuestion } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { subjectOf } from '../../kit/request';
import { useScope } from '../../kit/scope';

/** WHO are the parameters of "who can", CAN those of "what can"; both are asked as of at, and compared with since. */
export const WHO = ['verb', 'resource', 'namespace', 'name', 'path'];

/** Asking is what the address asks. */
export interface Asking {
  mode: 'who' | 'can' | 'none';
  /** at is the moment, as it is in the address: the server says what is wrong with it. '' is the newest known. */
  at: string;
  /** since is the moment it is compared with; '' for none. */
  since: string;
}

/** useAsking reads the address. */
export function useAsking(): Asking {
  const { params } = useLinks();
  const mode = params.get('verb') ? 'who' : params.get('subject') || params.get('group') ? 'can' : 'none';
  return { mode, at: params.get('at') ?? '', since: params.get('since') ?? '' };
}

/** useHolders asks who can, at a moment; null asks nothing. */
export function useHolders(at: string | null) {
  const { cluster } = useScope();
  const { params } = useLinks();
  const get = (k: string) => params.get(k) ?? '';
  return useQuestion('who-can', get('verb') && at !== null ? { cluster, verb: get('verb'), resource: get('resource'), namespace: get('namespace'), name: get('name'), path: get('path'), at, allNamespaces: !get('namespace') && !get('path') } : null);
}

/** whom takes what somebody wrote: a user, sa/NAMESPACE:NAME, group:NAME. */
export function whom(text: string): string {
  return /^(user|group):/.test(text) ? text : subjectOf(text);
}

/** useRights asks what somebody can do. */
export function useRights(at: string | null) {
  const { cluster } = useScope();
  const { params } = useLinks();
  const [subject, group] = [params.get('subject'), params.get('group')];
  return useQuestion('can', (subject || group) && at !== null ? { cluster, subject: subject && whom(subject), group, at } : null);
}

/** useDifference asks what changed between two moments, for everybody or for one. */
export function useDifference(asks: boolean, since: string, at: string) {
  const { cluster } = useScope();
  const subject = useLinks().params.get('subject');
  return useQuestion('changes', asks && since ? { cluster, from: since, to: at, subject: subject && whom(subject) } : null);
}

/** Pages of writes that are read at most: of more, the newest are ticks. */
const PAGES = 4;

/** useTicks asks when the policy was changed, over all that is stored: writes after which somebody could do something else, or may. */
export function useTicks() {
  const { cluster, clusters } = useScope();
  const of = clusters.find((c) => c.name === cluster);
  const asks = usePolicyChanges(of ? { cluster, limit: 500 } : null);
  const pages = asks.data?.pages;
  const { hasNextPage, isFetching, isError, error, fetchNextPage } = asks;
  const read = pages?.length ?? 0;
  const further = hasNextPage && !isError && read < PAGES;
  useEffect(() => {
    if (further && !isFetching) void fetchNextPage();
  }, [further, isFetching, read, fetchNextPage]);
  const ticks = useMemo(() => {
    const writes = (pages ?? []).flatMap((p) => p.changes).filter((w) => w.effect !== 'no');
    const at = writes.map((w) => Date.parse(w.time)).filter((t) => !Number.isNaN(t));
    return [...new Set(at)].sort((a, b) => a - b);
  }, [pages]);
  return { ticks, more: hasNextPage, pending: asks.isPending || further, error };
}

/** WRITES are the requests that wrote to the policy, as the API selects requests. */
const WRITES = [
  'apiGroup=rbac.authorization.k8s.io', 'decision=allow', 'code^=2', 'subresource=',
  ...['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'].map((r) => `resource=${r}`),
  ...['create', 'update', 'patch', 'delete', 'deletecollection'].map((v) => `verb=${v}`),
];

/** useOlder counts the writes before a moment by the server, step by step; null asks nothing. */
export function useOlder(before: number | null): { writes: number; at: number[] } {
  const { cluster } = useScope();
  const to = before === null ? null : new Date(before).toISOString();
  const { data } = useQuestion('histogram', to ? { cluster, to, where: JSON.stringify(WRITES), steps: 200 } : null);
  return useMemo(() => {
    const steps = (to && data?.steps) || [];
    return { writes: steps.reduce((n, s) => n + s.others, 0), at: steps.filter((s) => s.others).map((s) => Date.parse(s.t)) };
  }, [to, data]);
}

/** useNames completes what is written. */
export function useNames(kind: string, prefix: string, more: { resource?: string; namespace?: string } = {}): string[] {
  const { cluster } = useScope();
  const { data } = useQuestion('complete', { kind, cluster, prefix, limit: 20, ...more });
  return data?.kind === kind ? (data.values ?? []).map((v) => v.value) : [];
}
