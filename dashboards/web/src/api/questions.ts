// Hooks that ask. A page has hooks of its own beside it (queries.ts), made of these.
import { keepPreviousData, useInfiniteQuery, useQuery, type InfiniteData, type UseInfiniteQueryResult, type UseQueryResult } from '@tanstack/react-query';
import { useContext, createContext } from 'react';
import { ask, Failure, post, type Answer, type Body, type Path, type Posted, type PostedPath, type Query } from './ask';

/** Moment counts how often the page has caught up with the server: answers of an earlier one are asked for again. */
export const Moment = createContext(0);

/** Asked is a question and how it went. */
export type Asked<T> = UseQueryResult<T, Failure>;

/** useQuestion asks; null asks nothing. Until the answer to a changed question is there, that to the one before is shown. */
export function useQuestion<P extends Path>(path: P, query: Query<P> | null): Asked<Answer<P>> {
  const moment = useContext(Moment);
  return useQuery<Answer<P>, Failure>({
    queryKey: [path, query, moment],
    queryFn: ({ signal }) => ask(path, query as Query<P>, signal),
    enabled: query !== null,
    placeholderData: keepPreviousData,
  });
}

/** usePosted asks by POST; null asks nothing. name tells bodies apart, which may be long. What is asked so takes long: it is asked once,
 *  until the page asks again. */
export function usePosted<P extends PostedPath>(path: P, name: string, body: Body<P> | null): Asked<Posted<P>> {
  return useQuery<Posted<P>, Failure>({
    queryKey: [path, 'posted', name],
    queryFn: ({ signal }) => post(path, body as Body<P>, signal),
    enabled: body !== null,
  });
}

/** useRepeated asks again and again while the page is seen; null asks nothing. */
export function useRepeated<P extends Path>(path: P, query: Query<P> | null, milliseconds: number): Asked<Answer<P>> {
  return useQuery<Answer<P>, Failure>({
    queryKey: [path, 'repeated', query],
    queryFn: ({ signal }) => ask(path, query as Query<P>, signal),
    enabled: query !== null,
    refetchInterval: milliseconds,
    staleTime: 0,
  });
}

/** useConstant asks what does not change while the server runs: what the verdicts mean, which rules there are. */
export function useConstant<P extends 'classes' | 'rules'>(path: P): Asked<Answer<P>> {
  return useQuery<Answer<P>, Failure>({ queryKey: [path], queryFn: ({ signal }) => ask(path, {} as Query<P>, signal), gcTime: Infinity });
}

/** Pages of a list: those whose answer has an older. */
type Listed = { [P in Path]: Answer<P> extends { older?: string } ? P : never }[Path];

/** AskedPages is a list that goes on, page after page. */
export type AskedPages<T> = UseInfiniteQueryResult<InfiniteData<T>, Failure>;

/** usePages asks for a list, newest first, and with fetchNextPage for what is older. */
export function usePages<P extends Listed>(path: P, query: Query<P> | null): AskedPages<Answer<P>> {
  const moment = useContext(Moment);
  return useInfiniteQuery<Answer<P>, Failure, InfiniteData<Answer<P>>, readonly unknown[], string>({
    queryKey: [path, 'pages', query, moment],
    queryFn: ({ signal, pageParam }) => ask(path, { ...(query as Query<P>), before: pageParam }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => (last as { older?: string }).older || undefined,
    enabled: query !== null,
    placeholderData: keepPreviousData,
  });
}

/** usePolicyChanges lists what was written to the policy, newest first, and with fetchNextPage what is older; null asks nothing. */
export function usePolicyChanges(query: Query<'policy-changes'> | null): AskedPages<Answer<'policy-changes'>> {
  const moment = useContext(Moment);
  return useInfiniteQuery<Answer<'policy-changes'>, Failure, InfiniteData<Answer<'policy-changes'>>, readonly unknown[], string>({
    queryKey: ['policy-changes', 'pages', query, moment],
    queryFn: ({ signal, pageParam }) =>
      ask('policy-changes', { ...(query as Query<'policy-changes'>), ...(pageParam && { to: pageParam }) }, signal),
    initialPageParam: '',
    // The oldest writes of an answer come again: others of the same millisecond may not have been in it.
    getNextPageParam: ({ more, changes }, _, before) => {
      const oldest = changes.at(-1);
      const to = oldest && new Date(Date.parse(oldest.time) + 1).toISOString();
      return more && to !== before ? to : undefined;
    },
    enabled: query !== null,
    placeholderData: keepPreviousData,
  });
}
