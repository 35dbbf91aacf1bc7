// What a reader prefers, kept by the browser: colours, and times in UTC or as the clock on the wall.
import { useSyncExternalStore } from 'react';

/** Preferences and the values each may have; the first is the default. */
const CHOICES = { theme: ['system', 'light', 'dark'], clock: ['UTC', 'local'] } as const;

type Preference = keyof typeof CHOICES;
type Choice<P extends Preference> = (typeof CHOICES)[P][number];

const listeners = new Set<() => void>();

/** preferred returns what is preferred; where nothing can be kept, the default. */
export function preferred<P extends Preference>(what: P): Choice<P> {
  const kept = recall(what);
  return (CHOICES[what] as readonly string[]).includes(kept ?? '') ? (kept as Choice<P>) : CHOICES[what][0];
}

/** prefer keeps a choice and tells everybody. */
export function prefer<P extends Preference>(what: P, choice: Choice<P>): void {
  keep(what, choice);
  listeners.forEach((tell) => tell());
}

/** usePreference follows a preference. */
export function usePreference<P extends Preference>(what: P): Choice<P> {
  return useSyncExternalStore(listen, () => preferred(what));
}

function listen(tell: () => void): () => void {
  listeners.add(tell);
  addEventListener('storage', tell); // another tab
  return () => {
    listeners.delete(tell);
    removeEventListener('storage', tell);
  };
}

/** recall returns what was kept under a name; null where there is nothing, or keeping is not allowed. */
export function recall(name: string): string | null {
  try {
    return localStorage.getItem('retrial.' + name);
  } catch {
    return null;
  }
}

/** keep remembers a text under a name, where the browser lets it. */
export function keep(name: string, text: string): void {
  try {
    localStorage.setItem('retrial.' + name, text);
  } catch {
    /* a private window, or a full disk: the page works without */
  }
}
