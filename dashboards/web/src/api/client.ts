// How questions are asked: once for all who ask the same, again only where that may help.
import { QueryClient } from '@tanstack/react-query';
import { Failure } from './ask';

/** Attempts after the first, for what may pass: 1, 2 and 4 seconds later. */
const AGAIN = 3;

/** newClient returns the memory of answers. They stay true until the page asks for newer ones (see kit/scope.tsx). */
export function newClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: Infinity,
        gcTime: 120_000,
        refetchOnWindowFocus: false,
        refetchOnReconnect: false,
        networkMode: 'always', // the server may be on this machine
        retry: (failures, err) => err instanceof Failure && err.passing && failures < AGAIN,
        retryDelay: (failures) => 1000 * 2 ** failures,
      },
    },
  });
}
