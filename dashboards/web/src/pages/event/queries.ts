import type { Answer, Schemas } from '../../api/ask';
import { useQuestion, type Asked } from '../../api/questions';
import { asked } from '../../kit/request';
import { useScope } from '../../kit/scope';

/** Judged is a request with everything that is known of it. */
export type Judged = Schemas['JudgedRequest'];

/** Recorded is what the pages read of an audit event, which comes as it was stored. */
export interface Recorded {
  auditID?: string;
  verb?: string;
  requestURI?: string;
  requestReceivedTimestamp?: string;
  user?: Account;
  impersonatedUser?: Account;
  sourceIPs?: string[];
  userAgent?: string;
  responseStatus?: { code?: number; message?: string };
}

interface Account {
  username?: string;
  groups?: string[];
}

/** recordOf returns the event of a request. */
export function recordOf(r: Judged): Recorded {
  return (r.event ?? {});
}

/** useWhy asks for everything about the requests of an audit ID. */
export function useWhy(id: string): Asked<Answer<'why'>> {
  const { cluster } = useScope();
  return useQuestion('why', { auditID: id, cluster });
}

/** refused reports whether something refused a request, or would have. */
export function refused(r: Judged): boolean {
  const code = recordOf(r).responseStatus?.code;
  return r.verdict.recorded === 'forbid' || r.verdict.replayed === 'forbid' || code === 401 || code === 403;
}

/** useDenial asks who refused a request, and what would have allowed it. */
export function useDenial(r: Judged): Asked<Answer<'explain-deny'>> {
  return useQuestion('explain-deny', { auditID: recordOf(r).auditID ?? '', cluster: r.cluster });
}

/** useLineage asks for the life of a credential. */
export function useLineage(cluster: string, credential: string): Asked<Answer<'lineage'>> {
  return useQuestion('lineage', { cluster, credential });
}

/** useHeld asks which rules a subject held at the moment of its request: what is written in the rules that grants name. */
export function useHeld(r: Judged): Asked<Answer<'can'>> {
  const e = recordOf(r);
  const user = e.impersonatedUser ?? e.user;
  const at = e.requestReceivedTimestamp;
  const { namespace } = asked(e.verb ?? '', e.requestURI ?? '');
  const groups = user?.groups?.map((g) => (/[",\r\n]/.test(g) ? `"${g.replaceAll('"', '""')}"` : g)).join(',');
  return useQuestion('can', user?.username && at && r.verdict.grants?.length ? { cluster: r.cluster, subject: 'user:' + user.username, group: groups, namespace, at } : null);
}

/** SIDE is how many requests of a subject are shown on each side of one. */
const SIDE = 5;
/** Milliseconds after a request in which later ones are looked for: the list comes newest first. */
const AFTER = [5 * 60_000, 10_000];

/** useNeighbours asks what the subject of a request did just before and just after. */
export function useNeighbours(r: Judged): { asks: Asked<Answer<'events'>>; before: Schemas['Event'][]; after: Schemas['Event'][] } {
  const e = recordOf(r);
  const subject = (e.impersonatedUser ?? e.user)?.username ?? '';
  const t = Date.parse(e.requestReceivedTimestamp ?? '');
  const iso = (ms: number) => new Date(ms).toISOString();
  const can = subject !== '' && !Number.isNaN(t);
  const base = { cluster: r.cluster, subject };
  const earlier = useQuestion('events', can ? { ...base, to: iso(t + 1), limit: SIDE + 20 } : null);
  const wide = useQuestion('events', can ? { ...base, from: iso(t), to: iso(t + (AFTER[0] ?? 0)), limit: 500 } : null);
  const near = useQuestion('events', can && wide.data?.older ? { ...base, from: iso(t), to: iso(t + (AFTER[1] ?? 0)), limit: 500 } : null);
  const received = e.requestReceivedTimestamp ?? '';
  const other = (x: Schemas['Event']) => x.request !== r.request;
  const later = (wide.data?.older ? near.data : wide.data)?.events ?? [];
  return {
    asks: earlier,
    before: (earlier.data?.events ?? []).filter((x) => other(x) && micro(x.time) <= micro(received)).slice(0, SIDE),
    after: later.filter((x) => other(x) && micro(x.time) > micro(received)).slice(-SIDE),
  };
}

/** micro makes times comparable as texts: their fractions have up to six digits. */
function micro(time: string): string {
  const [whole = '', fraction = ''] = time.replace('Z', '').split('.');
  return whole + '.' + fraction.padEnd(6, '0');
}
