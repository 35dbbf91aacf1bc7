import { usePreference } from './preferences';
import { useScope } from './scope';

/** Time shows an instant as the reader prefers, UTC or local. The exact one, in both, is told when it is pointed at.
 *  short leaves out the date; ago adds how long before the given instant it was. */
export function Time({ at, short, ago }: { at: string | null | undefined; short?: boolean; ago?: string }) {
  const clock = usePreference('clock');
  const t = at ? new Date(at) : null;
  if (!t || Number.isNaN(t.getTime())) return <span className="soft">–</span>;
  return (
    <time dateTime={t.toISOString()} title={`${written(t, 'UTC')}\n${written(t, 'local')}`}>
      {short ? stamp(t, clock).slice(11) : stamp(t, clock)}
      {ago && <span className="soft"> · {apart(t, new Date(ago))}</span>}
    </time>
  );
}

/** When shows an instant of the range that is looked at: without its date where the range is of one day. */
export function When({ at }: { at: string | null | undefined }) {
  const { from, to } = useScope();
  const clock = usePreference('clock');
  const day = (s: string, less = 0) => stamp(new Date(Date.parse(s) - less), clock).slice(0, 10);
  return <Time at={at} short={day(from) === day(to, 1)} />;
}

/** stamp writes an instant: 2026-11-20 11:36:00. */
export function stamp(t: Date, clock: 'UTC' | 'local'): string {
  const shifted = clock === 'UTC' ? t : new Date(t.getTime() - t.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19).replace('T', ' ');
}

/** written is stamp with its zone, and milliseconds. */
function written(t: Date, clock: 'UTC' | 'local'): string {
  const zone = clock === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${stamp(t, clock)}.${String(t.getUTCMilliseconds()).padStart(3, '0')} ${zone}`;
}

/** spanOf words a stretch of time without saying a date twice. */
export function spanOf(from: string, to: string, clock: 'UTC' | 'local'): string {
  const a = stamp(new Date(from), clock);
  const b = stamp(new Date(to), clock);
  const brief = (s: string) => s.replace(/:00$/, '');
  return a.slice(0, 10) === b.slice(0, 10) ? `${brief(a)} – ${brief(b.slice(11))}` : `${brief(a)} – ${brief(b)}`;
}

const UNITS: [seconds: number, name: string][] = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];

/** apart says how long before another an instant is: '3 h before' is written '3 h'. */
export function apart(t: Date, now: Date): string {
  const s = Math.round(Math.abs(now.getTime() - t.getTime()) / 1000);
  const [unit, name] = UNITS.find(([u]) => s >= u) ?? [1, 's'];
  return `${Math.floor(s / unit)} ${name}${t <= now ? ' ago' : ' later'}`;
}

/** lasting words a length of time. */
export function lasting(seconds: number): string {
  const [unit, name] = UNITS.find(([u]) => seconds >= u) ?? [1, 's'];
  const n = seconds / unit;
  return `${n >= 10 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)} ${name}`;
}
