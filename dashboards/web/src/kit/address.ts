// The address holds the state of every view, so that each is a link:
//
//	#/explore?cluster=prod&verb=get     a page and what is chosen on it
//	#/subjects/system%3Aadmin           a page about something, its name encoded
//
// Names are chosen by clients: a segment is decoded by itself after the path was split, so that a slash in a name is none in the
// address. Values are never trusted; they go to the API as parameters and to the page as text.
import { useCallback, useMemo, useSyncExternalStore } from 'react';

/** Address is a page and its parameters. */
export interface Address {
  path: string;
  params: URLSearchParams;
}

/** Changes are parameters to set; null and '' remove one. */
export type Changes = Record<string, string | number | null | undefined>;

/** STAY are the parameters that every page has: leaving for another one keeps them. */
const STAY = ['cluster', 'range', 'from', 'to'];

/** parse reads the part of an address behind '#'. */
export function parse(hash: string): Address {
  const [path, query] = split(hash.replace(/^#/, ''), '?');
  return { path: '/' + path.replace(/^\/+|\/+$/g, ''), params: new URLSearchParams(query) };
}

/** write returns the address of a page as a link. */
export function write(path: string, params: URLSearchParams): string {
  const query = params.toString();
  return '#' + path + (query ? '?' + query : '');
}

/** pathOf makes a path of its segments, whatever is in them: pathOf('subjects', name). */
export function pathOf(...segments: string[]): string {
  return '/' + segments.map((s) => encodeURIComponent(s.toWellFormed())).join('/');
}

/** match compares a path with a pattern, '/subjects/:name', and returns what stands for its names; null if it does not fit. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split('/');
  const have = path.split('/');
  if (want.length !== have.length) return null;
  const found: Record<string, string> = {};
  for (const [i, w] of want.entries()) {
    const h = decoded(have[i] ?? '');
    if (w.startsWith(':')) found[w.slice(1)] = h;
    else if (w !== h) return null;
  }
  return found;
}

/** go leads somewhere; replace does so without a step in the history. */
export function go(href: string, how?: 'replace'): void {
  if (how !== 'replace') location.hash = href;
  else {
    history.replaceState(null, '', href);
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

/** Links make addresses that depend on where the page is. */
export interface Links extends Address {
  /** here is this page with some parameters changed. */
  here: (changes: Changes) => string;
  /** to is another page of the same cluster and time, with parameters of its own. */
  to: (path: string, changes?: Changes) => string;
  /** change goes to here(changes). */
  change: (changes: Changes, how?: 'replace') => void;
}

/** useLinks follows the address. */
export function useLinks(): Links {
  const hash = useSyncExternalStore(listen, () => location.hash);
  const at = useMemo(() => parse(hash), [hash]);
  const here = useCallback((changes: Changes) => write(at.path, changed(at.params, changes)), [at]);
  const to = useCallback((path: string, changes: Changes = {}) => {
    const kept = new URLSearchParams();
    for (const k of STAY) if (at.params.get(k)) kept.set(k, at.params.get(k) ?? '');
    return write(path, changed(kept, changes));
  }, [at]);
  const change = useCallback((changes: Changes, how?: 'replace') => go(here(changes), how), [here]);
  return { ...at, here, to, change };
}

function changed(params: URLSearchParams, changes: Changes): URLSearchParams {
  const now = new URLSearchParams(params);
  for (const [k, v] of Object.entries(changes)) {
    if (v === null || v === undefined || v === '') now.delete(k);
    else now.set(k, String(v));
  }
  return now;
}

function listen(told: () => void): () => void {
  addEventListener('hashchange', told);
  return () => removeEventListener('hashchange', told);
}

function split(s: string, by: string): [string, string] {
  const i = s.indexOf(by);
  return i < 0 ? [s, ''] : [s.slice(0, i), s.slice(i + 1)];
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
