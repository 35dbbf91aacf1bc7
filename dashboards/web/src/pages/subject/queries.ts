import { useQuestion } from '../../api/questions';
import { useScope } from '../../kit/scope';

/** useDoings asks what a subject did, and by which rules it could. */
export function useDoings(subject: string) {
  const { cluster, from, to } = useScope();
  return useQuestion('subject', { cluster, subject, from, to });
}

/** useRights asks what it may do at the end of the range. */
export function useRights(subject: string) {
  const { cluster, to } = useScope();
  return useQuestion('can', { cluster, subject: `user:${subject}`, at: to });
}

/** useSuggestion asks for the least it needs, of everything stored whatever the range: nobody should lose a right because of what one day shows. */
export function useSuggestion(subject: string) {
  const { cluster } = useScope();
  return useQuestion('suggest', { cluster, subject, includeSystem: true, kept: true });
}

/** useActivity asks how many requests it made, step by step. */
export function useActivity(subject: string) {
  const { cluster, from, to } = useScope();
  return useQuestion('histogram', { cluster, subject, from, to, split: 'decision' });
}

/** useFindings asks what detections found about it. */
export function useFindings(subject: string) {
  const { cluster, from, to } = useScope();
  return useQuestion('findings', { cluster, subject, from, to, limit: 50 });
}

/** useCredentials asks what it authenticated with, without where from: that is a credential's own question. */
export function useCredentials(subject: string) {
  const { cluster, from, to } = useScope();
  return useQuestion('lineage', { cluster, subject, from, to, limit: 20, brief: true });
}

/** useCredential asks for the life of a credential, all of it. */
export function useCredential(credential: string) {
  return useQuestion('lineage', { cluster: useScope().cluster, credential });
}

/** useWays asks how it could become cluster administrator. */
export function useWays(subject: string) {
  const { cluster, to } = useScope();
  return useQuestion('escalations', { cluster, subject: `user:${subject}`, at: to, includeSystem: true, limit: 5 });
}
