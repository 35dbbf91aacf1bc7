import { vi } from 'vitest';
import { Failure, type Path, type PostedPath } from '../../api/ask';

/** answers makes fetch answer for the server, by path; a Failure answers with its status and words. Paths it does not know are
 *  404. It returns the questions that were asked, 'events?cluster=a', what was posted behind a space. */
export function answers(by: Partial<Record<Path | PostedPath, unknown>>): string[] {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: URL, how?: RequestInit) => {
    const path = url.pathname.replace(/^.*\/api\/v1\//, '') as Path | PostedPath;
    asked.push(path + url.search + (typeof how?.body === 'string' ? ' ' + how.body : ''));
    const answer = by[path];
    if (answer instanceof Failure) return Promise.resolve(new Response(answer.message, { status: answer.status }));
    return Promise.resolve(answer === undefined ? new Response('there is no such path', { status: 404 }) : Response.json(answer));
  });
  return asked;
}
