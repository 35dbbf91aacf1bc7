// Addresses that the pages had before: what somebody kept or sent still leads where it did.
import { pathOf, write } from '../kit/address';

/** LISTED are the parameters of the list of requests and of the chart, which were on the first page. */
const LISTED = ['subject', 'verb', 'resource', 'decision', 'outcome', 'class', 'before', 'chart'];

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
  switch (path) {
    case '/': {
      if (!LISTED.some((p) => params.has(p))) break;
      take('before'); // where a page of the list began: it has no pages any more
      if (take('chart') === 'verdict') params.set('split', 'outcome');
      return write('/explore', params);
    }
    case '/subject': {
      const text = take('show'); // of the suggestion
      if (text) params.set('text', text);
      const subject = take('subject');
      return write(subject ? pathOf('subjects', subject) : '/subjects', params);
    }
    case '/lineage': {
      const subject = take('subject');
      return write(subject && !params.has('credential') ? pathOf('subjects', subject) : '/subjects', params);
    }
    case '/verdicts':
      params.set('show', 'verdicts');
      return write('/trust', params);
  }
  return user === null ? null : write(path, params);
}
