// The local API as docs/api.md describes it, typed by its OpenAPI document: a path that is not in it does not compile.
import { LISTS } from './lists';
import type { components, paths } from './schema';

/** Schemas are the types of answers and their parts: Schemas['Event']. */
export type Schemas = components['schemas'];

type Prefix = '/api/v1/';
type Get<P> = P extends keyof paths ? (paths[P] extends { get: infer G } ? G : never) : never;

/** Path is what can be asked: 'events', 'why' … */
export type Path = { [P in keyof paths]: Get<P> extends never ? never : P extends `${Prefix}${infer N}` ? N : never }[keyof paths];

type Content<G> = G extends { responses: { 200: { content: { 'application/json': infer A } } } } ? A : never;
type Parameters<G> = G extends { parameters: { query?: infer Q } } ? Exclude<Q, undefined> : never;

/** Answer is what a path answers with. */
export type Answer<P extends Path> = Content<Get<`${Prefix}${P}`>>;

/** Query are the parameters of a path. Values may come from the address of the page: the server says what is wrong with them. */
export type Query<P extends Path> = { [K in keyof Parameters<Get<`${Prefix}${P}`>>]: Value | null | undefined };
type Value = string | number | boolean;

type Post<P> = P extends keyof paths ? (paths[P] extends { post: infer G } ? G : never) : never;

/** PostedPath is what is asked by POST, since questions may be long. */
export type PostedPath = 'whatif';

/** Posted is what such a path answers with, Body what it is asked with. */
export type Posted<P extends PostedPath> = Content<Post<`${Prefix}${P}`>>;
export type Body<P extends PostedPath> = Post<`${Prefix}${P}`> extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;

/** Failure is a question that was not answered, in words for people: the server's own where it said something. */
export class Failure extends Error {
  /** status is the server's code; 0: it was not reached. */
  constructor(message: string, readonly status: number) {
    super(message);
    this.name = 'Failure';
  }

  /** passing reports whether asking again may help: nobody was there, or too many were. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

/** root is where the API is: the pages are served beside it, below any path. */
export function root(base: string): string {
  return new URL('.', base).href + 'api/v1/';
}

/** ask returns the answer to a question. Empty parameters are left out. It throws a Failure, or an AbortError. */
export async function ask<P extends Path>(path: P, query: Query<P>, signal?: AbortSignal): Promise<Answer<P>> {
  const url = new URL(root(document.baseURI) + path);
  for (const [k, v] of Object.entries(query as Record<string, Value | null | undefined>)) {
    if (v !== undefined && v !== null && v !== '' && v !== false) url.searchParams.set(k, String(v));
  }
  return (await answered(url, { headers: { Accept: 'application/json' }, signal: signal ?? null })) as Answer<P>;
}

/** post returns the answer to a question that is asked by POST. */
export async function post<P extends PostedPath>(path: P, body: Body<P>, signal?: AbortSignal): Promise<Posted<P>> {
  const headers = { Accept: 'application/json', 'Content-Type': 'application/json' };
  return (await answered(new URL(root(document.baseURI) + path), { method: 'POST', headers, body: JSON.stringify(body), signal: signal ?? null })) as Posted<P>;
}

async function answered(url: URL, how: RequestInit): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, how);
  } catch (err) {
    if (err instanceof Error && err.name === 'AbortError') throw err;
    throw new Failure('The server cannot be reached. Is retrial serve still running?', 0);
  }
  if (!response.ok) {
    const said = (await response.text()).trim();
    throw new Failure(said || `The server answered ${response.status} without a word.`, response.status);
  }
  try {
    return filled(await response.json());
  } catch (err) {
    if (err instanceof Error && err.name === 'AbortError') throw err;
    throw new Failure('The answer was cut off.', 0);
  }
}

/** filled puts an empty list where the server wrote null for one. */
export function filled(answer: unknown): unknown {
  if (Array.isArray(answer)) answer.forEach(filled);
  else if (answer !== null && typeof answer === 'object') {
    for (const [name, member] of Object.entries(answer as Record<string, unknown>)) {
      if (member === null && LISTS.has(name)) (answer as Record<string, unknown>)[name] = [];
      else filled(member);
    }
  }
  return answer;
}
