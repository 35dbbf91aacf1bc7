import type { ReactNode } from 'react';
import css from './figures.module.css';

/** Figure is a number and what it is of. */
export interface Figure {
  label: string;
  value: ReactNode;
  /** note says more in a few words. */
  note?: ReactNode;
  href?: string;
  tone?: 'bad' | 'good' | 'warn' | undefined;
}

/** Figures shows a few numbers side by side; those with an address lead to what they count. */
export function Figures({ list }: { list: Figure[] }) {
  return (
    <ul className={css.figures}>
      {list.map((f) => (
        <li key={f.label} data-tone={f.tone}>
          <span className={css.label}>{f.href ? <a href={f.href} data-row>{f.label}</a> : f.label}</span>
          <b className={css.value}>{f.value}</b>
          <span className={css.note}>{f.note}</span>
        </li>
      ))}
    </ul>
  );
}
