import type { ReactNode } from 'react';
import css from './page.module.css';

/** Page is a heading and what is below it. lead says in a sentence what the page answers; actions are beside the heading. */
export function Page({ title, lead, actions, children }: { title: ReactNode; lead?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div className={css.words}>
          <h1>{title}</h1>
          {lead && <p className={css.lead}>{lead}</p>}
        </div>
        {actions && <div className={css.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}
