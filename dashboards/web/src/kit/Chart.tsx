import { useEffect, useMemo, useRef, useState } from 'react';
import type { Plot } from './plot';
import { usePreference } from './preferences';
import { spanOf } from './Time';
import { count } from './words';
import css from './chart.module.css';

/** Series is a part of every bar. */
export interface Series {
  label: string;
  /** tone is one of the colours of base.css: 'allow', 'drift' … */
  tone: string;
  /** values, one for each time. */
  values: number[];
}

interface Props {
  label: string;
  /** from and to are what the chart is about; times are the begins of buckets of so many seconds, the empty ones left out. */
  from: string;
  to: string;
  seconds: number;
  times: string[];
  /** series from the bottom up. */
  series: Series[];
  /** ticks are moments to mark, such as changes of policy. */
  ticks?: string[];
  /** onPick is called with a stretch that was drawn or clicked. */
  onPick?: (from: string, to: string) => void;
  height?: number;
}

/** Chart shows stacked bars over time. What draws them is loaded when the first chart is; a table says the same to screen readers. */
export function Chart({ label, from, to, seconds, times, series, ticks, onPick, height = 190 }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const pick = useRef(onPick);
  const [at, setAt] = useState<number | null>(null);
  const [drawn, setDrawn] = useState(false);
  const clock = usePreference('clock');
  const theme = usePreference('theme');
  // Equal bars in new arrays need not be drawn again.
  const same = JSON.stringify([from, to, seconds, times, series, ticks]);
  const data = useMemo(() => {
    const [a, b, s, t, bars, marks] = JSON.parse(same) as [string, string, number, string[], Series[], string[] | null];
    return { ...fill(a, b, s, t, bars), tones: bars.map((x) => x.tone), ticks: (marks ?? []).map((x) => Date.parse(x) / 1000) };
  }, [same]);
  useEffect(() => {
    pick.current = onPick;
  }, [onPick]);

  useEffect(() => {
    let gone = false;
    void import('./plot').then(({ draw }) => {
      if (gone || !holder.current) return;
      plot.current?.destroy();
      plot.current = draw(holder.current, {
        ...data, seconds, height, utc: clock === 'UTC',
        onPoint: setAt, onPick: (a, b) => pick.current?.(new Date(a * 1000).toISOString(), new Date(b * 1000).toISOString()),
      });
      setDrawn(true);
    });
    return () => {
      gone = true;
      plot.current?.destroy();
      plot.current = null;
    };
  }, [data, seconds, height, clock, theme]);

  const start = at === null ? undefined : data.starts[at];
  return (
    <figure className={css.chart} aria-busy={!drawn || undefined}>
      <div ref={holder} className={css.plot} style={{ minHeight: height }} aria-hidden data-pick={onPick ? true : undefined} />
      <figcaption className={css.legend}>
        {series.map((s, i) => (
          <span key={i}><i style={{ background: `var(--${s.tone})` }} /><bdi>{s.label}</bdi>{at !== null && <b> {count(data.values[i]?.[at])}</b>}</span>
        ))}
        {start !== undefined && <span className={css.when}>{spanOf(new Date(start * 1000).toISOString(), new Date((start + seconds) * 1000).toISOString(), clock)}</span>}
      </figcaption>
      <div className="unseen"><table>
        <caption>{label}</caption>
        <thead><tr><th scope="col">From</th>{series.map((s, i) => <th key={i} scope="col"><bdi>{s.label}</bdi></th>)}</tr></thead>
        <tbody>{times.map((t, i) => <tr key={t}><th scope="row">{t}</th>{series.map((s, j) => <td key={j}>{s.values[i]}</td>)}</tr>)}</tbody>
      </table></div>
    </figure>
  );
}

/** fill puts the empty buckets back: starts in seconds, and the values of each series. */
export function fill(from: string, to: string, seconds: number, times: string[], series: Series[]): { starts: number[]; values: number[][] } {
  const known = new Map(times.map((t, i) => [Math.round(Date.parse(t) / 1000), i]));
  const anchor = known.keys().next().value ?? Date.parse(from) / 1000;
  const first = anchor - Math.ceil((anchor - Date.parse(from) / 1000) / seconds) * seconds;
  const starts: number[] = [];
  for (let t = first; t < Date.parse(to) / 1000 && starts.length < 2000; t += seconds) starts.push(t);
  return { starts, values: series.map((s) => starts.map((t) => s.values[known.get(t) ?? -1] ?? 0)) };
}
