import { useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useOverview sums up the range. */
export function useOverview() {
  const { cluster, from, to } = useScope();
  return useQuestion('overview', { cluster, from, to });
}

/** useFindings asks what the detections found in the range. */
export function useFindings() {
  const { cluster, from, to } = useScope();
  return useQuestion('findings', { cluster, from, to, limit: 200 });
}

/** useGaps asks what is known to be missing in the range. */
export function useGaps() {
  const { cluster, from, to } = useScope();
  return useQuestion('completeness', { cluster, from, to });
}
