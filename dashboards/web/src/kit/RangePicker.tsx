import { useState } from 'react';
import { useLinks } from './address';
import { usePreference } from './preferences';
import { instant, lastVisit, RANGES } from './range';
import { Menu } from './Menu';
import { useKnown } from './scope';
import { spanOf, stamp } from './Time';
import css from './range.module.css';

/** RangePicker chooses the stretch of time that is looked at: the last of what is stored, since the last visit, or from and to. */
export function RangePicker() {
  const { cluster, range } = useKnown();
  const { here } = useLinks();
  const clock = usePreference('clock');
  if (!cluster || !range) return null;
  const visited = lastVisit(cluster.name);
  const label = range.name === 'visit' ? 'Since my last visit' : range.name === 'fixed' ? 'Chosen time' : range.name === 'all' ? 'Everything' : `Last ${RANGES.find((r) => r[0] === range.name)?.[1]}`;
  const choose = (name: string) => here({ range: name === 'all' ? null : name, from: null, to: null, before: null });
  return (
    <div className={css.picker}>
      <Menu label={label} name={`Time range: ${label}`}>
        <div className={css.panel}>
          <ul className={css.ranges}>
            {RANGES.map(([name, text, seconds]) => (
              <li key={name}><a href={choose(name)} aria-current={range.name === name || undefined}>{seconds ? `Last ${text}` : text}</a></li>
            ))}
            <li>
              {visited === null ? <span className="soft">Since my last visit: this is the first</span> : <a href={choose('visit')} aria-current={range.name === 'visit' || undefined}>Since my last visit</a>}
            </li>
          </ul>
          <Absolute key={`${range.from} ${range.to} ${clock}`} from={range.from} to={range.to} clock={clock} />
          <p className={css.hint}>Ranges end with the newest event stored, not at the clock.</p>
        </div>
      </Menu>
      <span className={css.window}>{spanOf(range.from, range.to, clock)} {clock === 'UTC' && 'UTC'}</span>
    </div>
  );
}

/** Absolute asks for both ends, in the clock that is preferred. */
function Absolute({ from, to, clock }: { from: string; to: string; clock: 'UTC' | 'local' }) {
  const { change } = useLinks();
  const [a, setA] = useState(() => stamp(new Date(from), clock));
  const [b, setB] = useState(() => stamp(new Date(to), clock));
  const read = (s: string) => instant(s.trim().replace(' ', 'T') + (clock === 'UTC' && !/z$/i.test(s.trim()) ? 'Z' : ''));
  const [start, end] = [read(a), read(b)];
  const wrong = start === null ? 'From: want a time such as 2026-11-20 11:36' : end === null ? 'To: want a time such as 2026-11-20 11:36' : start >= end ? 'From has to be before To' : '';
  return (
    <form className={css.absolute} onSubmit={(e) => {
      e.preventDefault();
      if (start === null || end === null || wrong) return;
      change({ from: new Date(start).toISOString(), to: new Date(end).toISOString(), range: null, before: null });
      e.currentTarget.closest<HTMLElement>('[popover]')?.hidePopover();
    }}>
      <label>From <input value={a} onChange={(e) => setA(e.target.value)} spellCheck={false} /></label>
      <label>To <input value={b} onChange={(e) => setB(e.target.value)} spellCheck={false} /></label>
      {wrong && <p role="alert" className="bad small">{wrong}</p>}
      <button type="submit" className="primary" disabled={Boolean(wrong)}>Show ({clock})</button>
    </form>
  );
}
