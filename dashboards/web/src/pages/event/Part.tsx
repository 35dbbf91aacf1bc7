import { useId, type ReactNode } from 'react';
import { Name } from '../../kit/Name';
import css from './event.module.css';

/** Part is a titled part of what is told about a request. */
export function Part({ title, note, tone, children }: { title: ReactNode; note?: ReactNode; tone?: 'bad' | undefined; children: ReactNode }) {
  const id = useId();
  return (
    <section className={css.part} aria-labelledby={id} data-tone={tone}>
      <h2 id={id}>{title}</h2>
      {note && <p className={css.note}>{note}</p>}
      {children}
    </section>
  );
}

/** Fact is a line of a definition list. */
export function Fact({ title, children }: { title: string; children: ReactNode }) {
  return <><dt>{title}</dt><dd>{children}</dd></>;
}

/** Lines shows sentences of the server, which may quote names of clients. */
export function Lines({ list }: { list: string[] | null | undefined }) {
  if (!list?.length) return null;
  return <ul className={css.lines}>{list.map((s, i) => <li key={i}><Name plain most={1500}>{s}</Name></li>)}</ul>;
}
