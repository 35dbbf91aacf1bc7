// Addresses that the pages had before: what somebody kept or sent still leads where it did.
import { pathOf, write } from '../kit/address';

/** FILTERS of the list of requests, which was on the first page. */
const FILTERS = ['subject', 'verb', 'resource', 'decision', 'outcome', 'class', 'before'];

/** now returns the address that has taken an old one's place; null if it is not an old one. */
export function now(path: string, old: URLSearchParams): string | null {
  const params = new URLSearchParams(old);
  const take = (name: string) => {
    const value = params.get(name);
    params.delete(name);
    return value;
  };
  const user = take('user');
  if (user !== null && !params.has('subject')) params.set('subject', user);
  if (path === '/' && FILTERS.some((f) => params.has(f))) {
    params.delete('chart');
    return write('/explore', params);
  }
  if (path === '/subject') return write(params.get('subject') ? pathOf('subjects', take('subject') ?? '') : '/subjects', params);
  if (path === '/lineage') {
    const subject = take('subject');
    return write(subject ? pathOf('subjects', subject) : '/subjects', params);
  }
  if (path === '/verdicts') return write('/trust', (params.set('show', 'verdicts'), params));
  return user === null ? null : write(path, params);
}
