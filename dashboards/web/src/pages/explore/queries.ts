import { useEffect, useState } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { usePages, useQuestion, useRepeated, type Asked, type AskedPages } from '../../api/questions';
import { useScope } from '../../kit/scope';
import { whereOf, type Condition } from './conditions';
import { table } from '../../kit/words';

export type Event = Schemas['Event'];

/** useEvents asks for the requests that conditions select; none while another list stands in for it. */
export function useEvents(list: Condition[], on: boolean): AskedPages<Answer<'events'>> {
  const { cluster, from, to } = useScope();
  return usePages('events', on ? { cluster, from, to, where: whereOf(list), limit: 200 } : null);
}

/** LIVE is how many of the newest requests are shown live, and MILLISECONDS how often they are asked for. */
export const LIVE = 100;
const MILLISECONDS = 2000;

/** useNewest asks for the newest requests again and again, whenever they come. */
export function useNewest(list: Condition[], on: boolean): Asked<Answer<'events'>> {
  const { cluster, from } = useScope();
  return useRepeated('events', on ? { cluster, from, where: whereOf(list), limit: LIVE } : null, MILLISECONDS);
}

/** useFacets asks which values the requests have. */
export function useFacets(list: Condition[], keys: string[], limit = 6): Asked<Answer<'facets'>> {
  const { cluster, from, to } = useScope();
  return useQuestion('facets', keys.length ? { cluster, from, to, where: whereOf(list), keys: keys.join(), limit } : null);
}

/** useHistogram asks how many there were, step by step. */
export function useHistogram(list: Condition[], split: string): Asked<Answer<'histogram'>> {
  const { cluster, from, to } = useScope();
  return useQuestion('histogram', { cluster, from, to, where: whereOf(list), split, steps: 120 });
}

/** KINDS of complete are what completes a value of each key; those that are not here are counted in the range. */
const KINDS: Record<string, string> = table({ subject: 'subject', user: 'subject', impersonated: 'subject', group: 'group', namespace: 'namespace', resource: 'resource', verb: 'verb', name: 'name', path: 'path', userAgent: 'userAgent', rule: 'rule', class: 'class' });
/** FIXED are the values of columns that have no others. */
export const FIXED: Record<string, string[]> = { decision: ['allow', 'forbid', 'none'], replayed: ['allow', 'forbid', 'none'], outcome: ['match', 'drift', 'ambiguous', 'indeterminate', 'not_judged'], refused: ['yes', 'no'], system: ['yes', 'no'] };
const UNKNOWN = ['credential', 'auditID'];

/** Value is one that a key may have, and of how many requests. */
export interface Value {
  value: string;
  requests?: number;
}

/** useValues completes a value of a key. */
export function useValues(key: string | null, text: string, list: Condition[]): { values: Value[]; pending: boolean; error: Error | null } {
  const { cluster } = useScope();
  const resource = list.find((c) => c.key === 'resource' && c.sign === '=')?.value;
  const namespace = list.find((c) => c.key === 'namespace' && c.sign === '=')?.value;
  const kind = key && (key !== 'name' || resource) ? KINDS[key] : undefined;
  const named = useQuestion('complete', kind ? { kind, cluster, prefix: text, limit: 12, ...(key === 'name' ? { resource, namespace } : {}) } : null);
  const counts = key !== null && !kind && !(key in FIXED) && !UNKNOWN.includes(key);
  const counted = useFacets(list.filter((c) => c.key !== key), counts ? [key] : [], 50);
  const has = (v: string) => v.toLowerCase().includes(text.toLowerCase());
  if (key && key in FIXED) return { values: (FIXED[key] ?? []).filter(has).map((value) => ({ value })), pending: false, error: null };
  if (kind) return { values: named.isPlaceholderData ? [] : (named.data?.values ?? []), pending: named.isFetching, error: named.error };
  if (counts) return { values: (counted.data?.facets[0]?.key === key ? counted.data.facets[0].values : []).filter((v) => v.value && has(v.value)), pending: counted.isFetching, error: counted.error };
  return { values: [], pending: false, error: null };
}

/** ANYWHERE are the kinds that a text without a key may be a value of. */
const ANYWHERE = ['subject', 'namespace', 'resource', 'verb'] as const;

/** useAnywhere finds values of several keys that a text may mean. */
export function useAnywhere(text: string): { key: string; value: Value }[] {
  const { cluster } = useScope();
  const query = (kind: string) => (text ? { kind, cluster, prefix: text, limit: 4 } : null);
  const found = [useQuestion('complete', query('subject')), useQuestion('complete', query('namespace')), useQuestion('complete', query('resource')), useQuestion('complete', query('verb'))];
  if (!text) return [];
  return found.flatMap((asks, i) => (asks.isPlaceholderData ? [] : (asks.data?.values ?? [])).map((value) => ({ key: ANYWHERE[i] ?? 'subject', value })));
}

/** useSettled is a text that did not change for a moment. */
export function useSettled(text: string, ms = 120): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return settled;
}
