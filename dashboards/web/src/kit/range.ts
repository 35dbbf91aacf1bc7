// The stretch of time that is looked at. Ranges end with the newest event, not at the clock: a recording from last month opens
// on last month.
import type { Schemas } from '../api/ask';
import { keep, recall } from './preferences';

/** Range is a stretch of time: from inclusive, to exclusive, RFC 3339. */
export interface Range {
  from: string;
  to: string;
  /** name as in the address; 'fixed' when both ends are given. */
  name: string;
}

/** RANGES that can be chosen: their name in the address, their label, their length in seconds (0: everything). */
export const RANGES: [name: string, label: string, seconds: number][] = [
  ['15m', '15 min', 900],
  ['1h', '1 hour', 3600],
  ['24h', '24 hours', 86_400],
  ['7d', '7 days', 7 * 86_400],
  ['30d', '30 days', 30 * 86_400],
  ['all', 'Everything', 0],
];

/** rangeOf turns what the address says into instants. */
export function rangeOf(cluster: Schemas['Cluster'], params: URLSearchParams): Range {
  const from = instant(params.get('from'));
  const to = instant(params.get('to'));
  if (from !== null && to !== null && from < to) return { from: iso(from), to: iso(to), name: 'fixed' };
  const name = params.get('range') ?? 'all';
  const first = Date.parse(cluster.first);
  const last = Date.parse(cluster.last);
  if (name === 'visit') return { from: iso(Math.min(last, lastVisit(cluster.name) ?? first)), to: iso(last), name };
  const seconds = RANGES.find((r) => r[0] === name)?.[2];
  return { from: iso(seconds ? Math.max(first, last - seconds * 1000) : first), to: iso(last), name: seconds === undefined ? 'all' : name };
}

/** instant reads a time in the address; null if there is none. */
export function instant(s: string | null): number | null {
  const t = s ? Date.parse(s) : NaN;
  return Number.isNaN(t) ? null : t;
}

function iso(t: number): string {
  return new Date(t).toISOString();
}

/** A visit ends when nobody looked for so long. */
const APART = 30 * 60_000;

/** Visit is what is kept of a cluster: when somebody looked last, the newest event then, and the newest event at the end of the visit before. */
interface Visit {
  at: number;
  seen: number;
  before: number | null;
}

/** visiting notes that somebody looks at a cluster whose newest event is this. */
export function visiting(cluster: Schemas['Cluster'], now = Date.now()): void {
  const kept = visit(cluster.name);
  const before = kept && now - kept.at > APART ? kept.seen : (kept?.before ?? null);
  keep(`visit.${cluster.name}`, JSON.stringify({ at: now, seen: Date.parse(cluster.last), before } satisfies Visit));
}

/** lastVisit is the newest event that was there at the end of the visit before this one; null on the first. */
export function lastVisit(cluster: string): number | null {
  return visit(cluster)?.before ?? null;
}

function visit(cluster: string): Visit | null {
  try {
    const kept = JSON.parse(recall(`visit.${cluster}`) ?? 'null') as Partial<Visit> | null;
    return kept && typeof kept.at === 'number' && typeof kept.seen === 'number' ? { at: kept.at, seen: kept.seen, before: kept.before ?? null } : null;
  } catch {
    return null;
  }
}
