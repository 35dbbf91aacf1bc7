import { useId, type ReactNode } from 'react';
import type { Asked, AskedPages } from '../api/questions';
import { clean } from './words';
import css from './card.module.css';

/** Card is a titled part of a page. note says in a few words what is in it, actions are buttons beside its title. */
export function Card({ title, note, actions, children, flush }: { title: string; note?: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean }) {
  const id = useId();
  return (
    <section className={css.card} aria-labelledby={id} data-flush={flush || undefined}>
      <header className={css.head}>
        <h2 id={id}>{title}</h2>
        {note && <p className={css.note}>{note}</p>}
        {actions && <div className={css.actions}>{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Grid lays out cards: in one column on a narrow screen, else as columns say ('2fr 1fr'). */
export function Grid({ columns, children }: { columns: string; children: ReactNode }) {
  return <div className={css.grid} style={{ '--columns': columns } as React.CSSProperties}>{children}</div>;
}

interface QuestionProps<T> {
  asks: Asked<T> | AskedPages<T extends { pages: (infer P)[] } ? P : never>;
  /** empty says why there is nothing, when there is nothing. */
  empty?: (answer: T) => ReactNode;
  /** lines that the answer will probably take: what is below does not jump. */
  lines?: number;
  children: (answer: T) => ReactNode;
}

/** Question shows the answer to one question of the API, or how far it is: pending without jumping, failed in the server's words. */
export function Question<T>({ asks, empty, lines = 4, children }: QuestionProps<T>) {
  const { data, error, isPending, isPlaceholderData, fetchStatus } = asks;
  if (error && !isPlaceholderData) return <Failed error={error} again={() => void asks.refetch()} />;
  if (isPending || data === undefined) return fetchStatus === 'idle' ? null : <Pending lines={lines} />;
  const nothing = empty?.(data as T);
  return (
    <div className={css.body} data-stale={isPlaceholderData || undefined} aria-busy={isPlaceholderData || undefined}>
      {nothing ? <Empty>{nothing}</Empty> : children(data as T)}
    </div>
  );
}

/** Pending holds the place of an answer. */
export function Pending({ lines = 4 }: { lines?: number }) {
  return (
    <div className={css.pending} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => <i key={i} />)}
    </div>
  );
}

/** Failed says what went wrong. */
export function Failed({ error, again }: { error: Error; again?: () => void }) {
  return (
    <div className={css.failed} role="alert">
      <p>{clean(error.message)}</p>
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

/** Empty says why there is nothing. */
export function Empty({ children }: { children: ReactNode }) {
  return <div className={css.empty}>{children}</div>;
}
