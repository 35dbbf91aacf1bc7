import type { Query, Schemas } from '../../api/ask';
import { usePages, type AskedPages } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { useScope } from '../../kit/scope';

/** FILTERS are the parameters of the address that choose requests. */
export const FILTERS = ['subject', 'verb', 'resource', 'decision', 'outcome', 'class'];

/** useEvents asks for the requests that the address chooses. */
export function useEvents(): AskedPages<Schemas['EventsAnswer']> {
  const { cluster, from, to } = useScope();
  const { params } = useLinks();
  const filters = Object.fromEntries(FILTERS.map((f) => [f, params.get(f)])) as Partial<Query<'events'>>;
  return usePages('events', { cluster, from, to, ...filters, limit: 200 });
}
