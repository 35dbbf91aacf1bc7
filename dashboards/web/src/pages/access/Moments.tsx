import { useEffect, useRef, useState } from 'react';
import { useLinks } from '../../kit/address';
import { Name } from '../../kit/Name';
import { usePreference } from '../../kit/preferences';
import { instant } from '../../kit/range';
import { useScope } from '../../kit/scope';
import { stamp, Time } from '../../kit/Time';
import { clean, plural } from '../../kit/words';
import { useAsking, useOlder, useTicks } from './queries';
import css from './access.module.css';

/** Ticks that are drawn: more of them would be one line. */
const MOST = 400;
/** A tick is when a write was asked for. So many milliseconds later it is in force. */
const SETTLED = 1000;

/** Moments chooses the time that is asked about, and another one to compare with; changes of policy are ticks between. */
export function Moments() {
  const { here, change } = useLinks();
  const { cluster, clusters } = useScope();
  const { at, since } = useAsking();
  const { ticks, more, pending, error } = useTicks();
  const older = useOlder(more && !pending ? (ticks[0] ?? null) : null);
  const of = clusters.find((c) => c.name === cluster);
  if (!of) return null;
  const [first, last] = [Math.floor(Date.parse(of.first) / 1000) * 1000, Math.ceil(Date.parse(of.last) / 1000) * 1000];
  const now = instant(at) ?? last; // the server says what is wrong with another
  const then = instant(since);
  const part = (t: number) => Math.max(0, Math.min(1, (t - first) / Math.max(1, last - first)));
  const iso = (t: number) => new Date(t).toISOString();
  const drawn = [...new Set([...older.at, ...ticks].filter((t) => t >= first && t <= last).map((t) => Math.round(part(t) * MOST)))];
  const before = ticks.findLast((t) => t < now - 1 && t > first);
  const after = ticks.find((t) => t > now);
  const between = then === null ? 0 : ticks.filter((t) => t > Math.min(then, now) && t <= Math.max(then, now)).length;
  return (
    <div className={css.moments}>
      <p className={css.asof}>
        {instant(at) !== null ? <>As of <Time at={at} /></> : at ? <>As of <Name>{at}</Name></> : <>As of the newest policy known</>}
        {then !== null && <>, compared with <Time at={since} /><span className="soft">: {more && 'at least '}{plural(between, 'change')} of policy between</span></>}
      </p>
      <div className={css.rail}>
        <svg aria-hidden className={css.ticks} viewBox={`0 0 ${MOST} 10`} preserveAspectRatio="none">
          {then !== null && <rect x={Math.min(part(then), part(now)) * MOST} width={Math.abs(part(now) - part(then)) * MOST} y="0" height="10" className={css.span} />}
          {drawn.map((x) => <path key={x} d={`M${x} 0v10`} vectorEffect="non-scaling-stroke" />)}
        </svg>
        {then !== null && <Handle label="Compared with" first={first} last={last} value={then} other onValue={(t) => change({ since: iso(t) }, 'replace')} />}
        <Handle label="As of" first={first} last={last} value={now} onValue={(t) => change({ at: t >= last ? null : iso(t) }, 'replace')} />
      </div>
      <div className={css.steps}>
        {error && <span role="alert" className="bad">When the policy changed is not known: {clean(error.message)}</span>}
        <span className="soft">{error ? '' : pending && !ticks.length ? 'Looking for changes of policy …' : said(ticks.length, more, older.writes)}</span>
        {before !== undefined && <a className="button" href={here({ at: iso(before - 1) })}>Before the change before</a>}
        {after !== undefined && <a className="button" href={here({ at: iso(after + SETTLED) })}>After the next change</a>}
        <Exactly key={now} value={now} onValue={(t) => change({ at: iso(t) })} />
        {at && <a className="button" href={here({ at: null })}>Newest</a>}
        {then === null ? <a className="button" href={here({ since: iso(first) })}>Compare with another time</a> : <a className="button" href={here({ since: null })}>Do not compare</a>}
      </div>
    </div>
  );
}

function said(ticks: number, more: boolean, older: number): string {
  if (!ticks) return 'No change of policy is known in this time.';
  const moments = `${plural(ticks, 'moment')} at which the policy changed`;
  return more ? `The newest ${moments}; of ${older ? plural(older, 'older write') : 'older ones'} only about when` : moments;
}

/** Exactly is the moment to write. It is asked about when that is done. */
function Exactly({ value, onValue }: { value: number; onValue: (t: number) => void }) {
  const clock = usePreference('clock');
  const [text, setText] = useState(() => stamp(new Date(value), clock).replace(' ', 'T'));
  const done = () => {
    const t = instant(text + (clock === 'UTC' ? 'Z' : ''));
    if (t !== null && Math.floor(value / 1000) * 1000 !== t) onValue(t);
  };
  return (
    <form className={css.exactly} onSubmit={(e) => { e.preventDefault(); done(); }}>
      <input type="datetime-local" step={1} aria-label={`As of, ${clock === 'UTC' ? 'in UTC' : 'local time'}`} value={text}
        onChange={(e) => setText(e.target.value)} onBlur={done} />
    </form>
  );
}

/** Handle is one end. What it chooses is asked when it rests. */
function Handle({ label, first, last, value, onValue, other }: { label: string; first: number; last: number; value: number; onValue: (t: number) => void; other?: boolean }) {
  const clock = usePreference('clock');
  const [moved, setMoved] = useState<number | null>(null);
  const told = useRef(onValue);
  useEffect(() => {
    told.current = onValue;
  }, [onValue]);
  useEffect(() => {
    if (moved === null) return;
    const timer = setTimeout(() => {
      told.current(moved);
      setMoved(null);
    }, 250);
    return () => clearTimeout(timer);
  }, [moved]);
  const at = moved ?? value;
  return (
    <input type="range" className={css.handle} data-other={other} aria-label={label} aria-valuetext={stamp(new Date(at), clock)} title={`${label} ${stamp(new Date(at), clock)} ${clock}`}
      min={first} max={last} step={1000} value={Math.max(first, Math.min(last, at))} onChange={(e) => setMoved(Number(e.target.value))} />
  );
}
