// What a page is about: a cluster and a stretch of time, as of a moment. News is looked for in the background; a reader who is at
// something keeps what is shown until it is asked for.
import { useQuery } from '@tanstack/react-query';
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { ask, Failure, type Answer, type Schemas } from '../api/ask';
import { Moment } from '../api/questions';
import { go, useLinks } from './address';
import { lastVisit, rangeOf, visiting, type Range } from './range';

/** Milliseconds between looks: at how far the server is, for new events, and for what comes without them (findings, corrections);
 *  and between notes that somebody is here. */
const BEAT = { status: 3000, clusters: 6000, rest: 20_000, visit: 300_000 };

/** Everything that is known before a page asks. */
export interface Known {
  /** clusters as of the moment the page shows; undefined until the first answer. */
  clusters: Schemas['Cluster'][] | undefined;
  /** cluster is the chosen one; undefined if there is none of that name. */
  cluster: Schemas['Cluster'] | undefined;
  range: Range | undefined;
  status: Answer<'status'> | undefined;
  /** failure of the last look at the server. */
  failure: Failure | null;
  /** news waits: there is something newer than what is shown. */
  news: boolean;
  /** catchUp shows it. */
  catchUp: () => void;
}

const Scope = createContext<Known | null>(null);

/** useKnown is for the frame; pages use useScope. */
export function useKnown(): Known {
  const known = useContext(Scope);
  if (!known) throw new Error('outside of ScopeProvider');
  return known;
}

/** useScope returns the cluster and the range a page is about. Pages are shown when there are both. */
export function useScope(): { cluster: string; from: string; to: string; range: Range; clusters: Schemas['Cluster'][] } {
  const { cluster, range, clusters } = useKnown();
  if (!cluster || !range) throw new Error('a page without a cluster');
  return { cluster: cluster.name, from: range.from, to: range.to, range, clusters: clusters ?? [] };
}

/** ScopeProvider looks at the server and keeps the moment. */
export function ScopeProvider({ children }: { children: ReactNode }) {
  const { params } = useLinks();
  const newest = useQuery<Answer<'clusters'>, Failure>({ queryKey: ['clusters'], queryFn: ({ signal }) => ask('clusters', {}, signal), refetchInterval: BEAT.clusters, retry: false });
  const status = useQuery<Answer<'status'>, Failure>({ queryKey: ['status'], queryFn: ({ signal }) => ask('status', {}, signal), refetchInterval: BEAT.status, retry: false });
  const [shown, setShown] = useState<{ clusters: Schemas['Cluster'][] | undefined; moment: number }>({ clusters: undefined, moment: 0 });

  const arrived = newest.data?.clusters;
  const latest = useRef(arrived);
  useEffect(() => {
    latest.current = arrived;
  }, [arrived]);
  const catchUp = useCallback(() => setShown((s) => ({ clusters: latest.current ?? s.clusters, moment: s.moment + 1 })), []);
  useEffect(() => {
    // eslint-disable-next-line react-hooks/set-state-in-effect -- whether somebody reads is known to the document alone
    if (arrived) setShown((s) => (s.clusters && reading() ? s : { clusters: arrived, moment: s.clusters ? s.moment + 1 : s.moment }));
  }, [arrived]);

  // What comes without new events: findings, and verdicts that are corrected.
  const behind = status.data ? status.data.lag + status.data.policyLag + status.data.corrections > 0 : false;
  const wasBehind = useRef(false);
  useEffect(() => {
    if (wasBehind.current && !behind && !reading()) catchUp();
    wasBehind.current = behind;
  }, [behind, catchUp]);
  // A server that is away answers nothing new: what is shown stays.
  const away = useRef(false);
  const failure = status.error ?? newest.error;
  useEffect(() => {
    away.current = failure !== null;
  }, [failure]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && !away.current && !reading()) catchUp();
    }, BEAT.rest);
    return () => clearInterval(timer);
  }, [catchUp]);

  // Without a cluster in the address: the one with the newest events; in the address, so that it does not change by itself.
  const wanted = params.get('cluster');
  const { clusters } = shown;
  useEffect(() => {
    if (wanted || !clusters?.length) return;
    const best = clusters.reduce((a, b) => (b.last > a.last ? b : a));
    const now = new URLSearchParams(location.hash.split('?').slice(1).join('?'));
    now.set('cluster', best.name);
    // Who opens Retrial, and no link to something, sees what came since the last visit.
    visiting(best);
    const seen = lastVisit(best.name);
    const bare = /^#?\/?(\?|$)/.test(location.hash) && !['range', 'from', 'to'].some((p) => now.has(p));
    if (bare && seen !== null && seen < Date.parse(best.last)) now.set('range', 'visit');
    go(`${location.hash.split('?')[0] || '#/'}?${now}`, 'replace');
  }, [wanted, clusters]);

  const cluster = clusters?.find((c) => c.name === wanted);
  const seen = cluster?.last;
  useEffect(() => {
    if (!cluster) return;
    visiting(cluster);
    const timer = setInterval(() => document.hidden || visiting(cluster), BEAT.visit);
    return () => clearInterval(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each newest event
  }, [cluster?.name, seen]);

  const range = useMemo(() => cluster && rangeOf(cluster, params), [cluster, params]);
  const known: Known = {
    clusters, cluster, range, catchUp,
    status: status.data,
    failure,
    news: arrived !== undefined && clusters !== undefined && arrived !== clusters,
  };
  return <Scope value={known}><Moment value={shown.moment}>{children}</Moment></Scope>;
}

/** A reader who has not moved for so long is not at anything. */
const IDLE = 10_000;
let moved = 0;
for (const kind of ['pointermove', 'pointerdown', 'wheel', 'keydown']) addEventListener(kind, () => (moved = Date.now()), { passive: true, capture: true });

/** reading reports whether somebody is at something on the page: then it must not move. */
export function reading(): boolean {
  const main = document.getElementById('main');
  if (!main) return false;
  const at = document.activeElement;
  return (at !== main && main.contains(at)) || scrollY > 80 || document.querySelector('dialog[open]') !== null || String(getSelection()) !== '' ||
    (main.matches(':hover') && Date.now() - moved < IDLE);
}
