import type { Write } from './queries';
import { table } from '../../kit/words';

/** EFFECTS say whether a write changed what anybody can do; tone is their colour, series that of their bars. */
export const EFFECTS: Record<string, { text: string; tone: string; series: string }> = table({
  yes: { text: 'Access changed', tone: 'accent', series: 'allow' },
  no: { text: 'No access changed', tone: 'none', series: 'none' },
  unknown: { text: 'Not known', tone: 'warn', series: 'ambiguous' },
});

/** Lengths of a bar, in seconds. */
const STEPS = [1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400];

/** Bars that there are at most. */
const MOST = 90;

/** barsOf counts writes over time, by effect. */
export function barsOf(rows: Write[], from: string, to: string): { seconds: number; times: string[]; values: Record<string, number[]> } {
  const length = (Date.parse(to) - Date.parse(from)) / 1000;
  const seconds = STEPS.find((s) => length / s <= MOST) ?? Math.ceil(length / MOST);
  const bars = new Map<number, Record<string, number>>();
  for (const w of rows) {
    const start = Math.floor(Date.parse(w.time) / 1000 / seconds) * seconds;
    if (Number.isNaN(start)) continue;
    const bar = bars.get(start) ?? {};
    bar[w.effect] = (bar[w.effect] ?? 0) + 1;
    bars.set(start, bar);
  }
  const sorted = [...bars].sort(([a], [b]) => a - b);
  return {
    seconds,
    times: sorted.map(([t]) => new Date(t * 1000).toISOString()),
    values: Object.fromEntries(Object.keys(EFFECTS).map((e) => [e, sorted.map(([, bar]) => bar[e] ?? 0)])),
  };
}
