import { useMemo } from 'react';
import type { Schemas } from '../../api/ask';
import { usePolicyChanges, useQuestion } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { subjectOf } from '../../kit/request';
import { useScope } from '../../kit/scope';

/** Write is one write to a role or binding. */
export type Write = Schemas['PolicyChange'];

/** FILTERS are the parameters that narrow the list. */
export const FILTERS = ['effect', 'author', 'object'];

/** useWrites lists the writes of the range, newest first: those of the pages that are there, and of these those that are asked for. */
export function useWrites() {
  const { cluster, from, to } = useScope();
  const { params } = useLinks();
  const asks = usePolicyChanges({ cluster, from, to, limit: 500 });
  const pages = asks.data?.pages;
  const all = useMemo(() => [...new Map((pages ?? []).flatMap((p) => p.changes).map((w) => [keyOf(w), w])).values()], [pages]);
  const [effect, author, object] = FILTERS.map((f) => params.get(f) ?? '') as [string, string, string];
  const rows = useMemo(
    () => all.filter((w) => (!effect || w.effect === effect) && by(w, author) && about(w, object)),
    [all, effect, author, object],
  );
  return { asks, all, rows, filtered: FILTERS.some((f) => params.get(f)) };
}

/** keyOf tells writes apart. */
export function keyOf(w: Write): string {
  return JSON.stringify([w.auditID ?? '', w.time, w.object]);
}

function by(w: Write, author: string): boolean {
  return !author || [w.user, w.actingAs ?? ''].some((u) => has(u, author) || u === subjectOf(author));
}

function about(w: Write, object: string): boolean {
  return !object || [w.object, ...(w.objects ?? [])].some((o) => has(o, object));
}

function has(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.trim().toLowerCase());
}

/** useChange asks what the writes of a request changed, and what came of it. */
export function useChange(id: string) {
  const { cluster } = useScope();
  return useQuestion('policy-changes', { cluster, id });
}

/** useRefusals asks what was refused in the range, and by which writes. */
export function useRefusals() {
  const { cluster, from, to } = useScope();
  return useQuestion('refusals', { cluster, from, to, limit: 200 });
}
