import { useConstant, useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useOverview sums up the range. */
export function useOverview() {
  const { cluster, from, to } = useScope();
  return useQuestion('overview', { cluster, from, to });
}

/** useCompleteness asks what apiservers sent in the range and what of it is missing. */
export function useCompleteness() {
  const { cluster, from, to } = useScope();
  return useQuestion('completeness', { cluster, from, to });
}

/** useDrift asks for what does not match, by likely cause. */
export function useDrift() {
  const { cluster, from, to } = useScope();
  return useQuestion('drift', { cluster, from, to });
}

/** useDoctor asks for the health of the installation and of this cluster. */
export function useDoctor() {
  return useQuestion('doctor', { cluster: useScope().cluster });
}

/** useConnection asks how far this cluster's connection is. */
export function useConnection() {
  return useQuestion('connection', { cluster: useScope().cluster });
}

/** useJobs asks for what is judged again, or was. */
export function useJobs() {
  return useQuestion('rejudge', { cluster: useScope().cluster });
}

/** useMeanings asks what outcomes and classes mean. */
export function useMeanings() {
  return useConstant('classes');
}
