import { useMemo } from 'react';
import type { Body } from '../../api/ask';
import { usePosted, useQuestion } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { keptDraft, markOf, type Sheet } from '../../kit/draft';
import { subjectOf } from '../../kit/request';
import { useScope } from '../../kit/scope';

/** Asking is what the address asks: objects to delete, whose requests, and the draft by its mark. */
export interface Asking {
  deletes: string[];
  subject: string;
  mark: string;
  /** draft is what the mark stands for; null: another tab has it. */
  draft: Sheet[] | null;
}

/** useAsking reads the address. */
export function useAsking(): Asking {
  const { params } = useLinks();
  const [deletes, subject, mark] = [params.get('delete') ?? '', params.get('subject') ?? '', params.get('draft') ?? ''];
  return useMemo(() => {
    const kept = keptDraft();
    const draft = mark === '' ? [] : mark === markOf(kept) ? kept : null;
    return { deletes: linesOf(deletes), subject, mark, draft };
  }, [deletes, subject, mark]);
}

/** linesOf are the objects that a parameter lists. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split('\n').map((s) => s.trim()).filter(Boolean))];
}

/** useDrafted asks what a change would do; nothing while nothing is drafted, or the draft is in another tab. */
export function useDrafted({ deletes, subject, mark, draft }: Asking) {
  const { cluster, from, to, range } = useScope();
  const body: Body<'whatif'> | null = draft === null || draft.length + deletes.length === 0 ? null : {
    cluster,
    ...(draft.length > 0 && { draft: Object.fromEntries(draft.map((s) => [s.name, s.text])) }),
    ...(deletes.length > 0 && { delete: deletes }),
    ...(subject && { subject: [subjectOf(subject)] }),
    ...(range.name !== 'all' && { from, to }),
  };
  return usePosted('whatif', JSON.stringify([cluster, mark, deletes, subject, body?.from, body?.to]), body);
}

/** useObjects completes objects of the policy as Kind/name; useNames subjects. */
export function useObjects(prefix: string): string[] {
  const { cluster } = useScope();
  const text = prefix.split('/').slice(prefix.includes('/') ? 1 : 0).join('/');
  const kind = prefix.includes('/') ? prefix.split('/')[0]?.toLowerCase().replace(/s$/, '') : undefined;
  const ask = (of: string) => ({ cluster, kind: of, prefix: text, limit: 20 });
  const roles = useQuestion('complete', kind?.endsWith('binding') ? null : ask('role')).data;
  const bindings = useQuestion('complete', kind?.endsWith('role') ? null : ask('binding')).data;
  const all = [...(bindings?.values ?? []), ...(roles?.values ?? [])].filter((v) => !kind || v.kind?.toLowerCase() === kind);
  return [...new Set(all.map((v) => `${v.kind}/${v.value}`))].slice(0, 30);
}

export function useSubjects(prefix: string): string[] {
  const { cluster } = useScope();
  return (useQuestion('complete', { cluster, kind: 'subject', prefix }).data?.values ?? []).map((v) => v.value);
}
