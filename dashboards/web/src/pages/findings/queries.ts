import type { Query, Schemas } from '../../api/ask';
import { usePages, useQuestion, type Asked, type AskedPages } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { useScope } from '../../kit/scope';

export type Finding = Schemas['DetectFinding'];

/** FILTERS are the parameters of the address that choose findings. */
export const FILTERS = ['severity', 'rule', 'subject'];

/** useFindings asks for the findings that the address chooses. */
export function useFindings(): AskedPages<Schemas['FindingsAnswer']> {
  const { cluster, from, to } = useScope();
  const { params } = useLinks();
  const filters = Object.fromEntries(FILTERS.map((f) => [f, params.get(f)])) as Partial<Query<'findings'>>;
  return usePages('findings', { cluster, from, to, ...filters, limit: 200 });
}

/** useCounts counts the findings of every rule: those of the filters, the rule left out. */
export function useCounts(): Asked<Schemas['FindingsAnswer']> {
  const { cluster, from, to } = useScope();
  const { params } = useLinks();
  return useQuestion('findings', { cluster, from, to, severity: params.get('severity'), subject: params.get('subject'), limit: 1 });
}

/** useFinding looks for one finding. The API lists them by time: the address has when it began (since), else the range is looked
 *  through. Of those under way at its begin the list has the latest begun first: it is among them. */
export function useFinding(id: string): Asked<Schemas['FindingsAnswer']> {
  const { cluster, from, to } = useScope();
  const since = useLinks().params.get('since');
  return useQuestion('findings', since ? { cluster, from: since, at: since, limit: 500 } : { cluster, from, to, limit: id ? 500 : 1 });
}
