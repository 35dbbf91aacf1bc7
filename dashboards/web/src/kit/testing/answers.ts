import { vi } from 'vitest';
import { Failure, type Path } from '../../api/ask';

/** answers makes fetch answer for the server, by path; a Failure answers with its status and words. Paths it does not know are
 *  404. It returns the questions that were asked, 'events?cluster=a'. */
export function answers(by: Partial<Record<Path, unknown>>): string[] {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: URL) => {
    const path = url.pathname.replace(/^.*\/api\/v1\//, '') as Path;
    asked.push(path + url.search);
    const answer = by[path];
    if (answer instanceof Failure) return Promise.resolve(new Response(answer.message, { status: answer.status }));
    return Promise.resolve(answer === undefined ? new Response('there is no such path', { status: 404 }) : Response.json(answer));
  });
  return asked;
}
