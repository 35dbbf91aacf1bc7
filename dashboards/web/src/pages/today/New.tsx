import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name, Subject } from '../../kit/Name';
import { filtersOf, whatOf } from '../../kit/request';
import { userOf } from '../../kit/Rule';
import { When } from '../../kit/Time';
import { clean, count, plural, sentence } from '../../kit/words';
import { keyed, subjectPage } from './links';
import { newcomersOf, useNews, type Newcomer } from './queries';
import css from './today.module.css';

/** Rows that are shown at once. */
const MOST = { subjects: 5, grants: 3 };

/** New answers: what is new, against what is stored from before? */
export function New() {
  const { params, to, here } = useLinks();
  const { asks, since, to: end } = useNews();
  const all = params.get('new') === 'all';
  const range = { from: since, to: end, range: null };
  const subjects: Column<Newcomer>[] = [
    { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', leads: true, cell: (n) => <Subject most={60}>{n.subject}</Subject> },
    {
      id: 'what',
      head: 'First of it',
      width: 'minmax(0, 1.5fr)',
      cell: (n) =>
        n.uses[0] && (
          <a className={css.inner} href={to('/explore', { ...filtersOf(n.uses[0]), ...range })}>
            <Use of={n.uses[0]} />
          </a>
        ),
    },
    { id: 'count', head: 'New', width: '48px', number: true, cell: (n) => count(n.uses.length) },
  ];
  const page = (g: Schemas['FirstGrant']) => subjectPage(keyed(g.subject));
  const grants: Column<Schemas['FirstGrant']>[] = [
    { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', leads: true, cell: (g) => <Held by={g.subject} /> },
    { id: 'binding', head: 'By the binding', width: 'minmax(0, 1.5fr)', cell: (g) => <Name most={110}>{g.binding}</Name> },
    { id: 'requests', head: 'Uses', width: '48px', number: true, cell: (g) => count(g.requests) },
  ];
  return (
    <Card
      title="New"
      note={
        <>
          since <When at={since} />
        </>
      }
      flush
    >
      <Question asks={asks} lines={8}>
        {(a) => {
          const who = newcomersOf(a.uses);
          if (a.baseline === 'none') return <p className={css.words}>{sentence(clean(a.text))}</p>;
          const more = who.length - MOST.subjects + Math.max(0, a.grants.length - MOST.grants);
          return (
            <>
              <p className={css.words} data-doubt={a.baseline === 'short' || undefined}>
                {sentence(clean(a.text))}
                {a.unnamed > 0 && ` ${plural(a.unnamed, 'request')} cannot be told by what was asked.`}
              </p>
              {who.length === 0 && <p className={css.none}>Nobody did anything that is not known from before.</p>}
              {who.length > 0 && (
                <DataTable
                  label="New accesses"
                  columns={subjects}
                  rows={all ? who : who.slice(0, MOST.subjects)}
                  rowKey={(n) => n.subject}
                  href={(n) =>
                    n.uses.length === 1 && n.uses[0]
                      ? to('/explore', { ...filtersOf(n.uses[0]), ...range })
                      : to(...subjectAt(n.subject, range))
                  }
                />
              )}
              {a.grants.length > 0 && <h3 className={css.part}>Bindings used for the first time</h3>}
              {a.grants.length > 0 && (
                <DataTable
                  label="New grants"
                  columns={grants}
                  rows={all ? a.grants : a.grants.slice(0, MOST.grants)}
                  rowKey={(g) => JSON.stringify([g.binding, g.subject, g.rule])}
                  href={(g) => to(page(g)[0], { ...page(g)[1], ...range })}
                />
              )}
              {more > 0 && (
                <p className={css.rest}>
                  <a href={here({ new: all ? null : 'all' })}>
                    {all ? 'Fewer' : `All ${plural(who.length, 'subject')} and ${plural(a.grants.length, 'binding')}`}
                  </a>
                </p>
              )}
            </>
          );
        }}
      </Question>
    </Card>
  );
}

function subjectAt(subject: string, range: { from: string; to: string; range: null }) {
  const [path, changes] = subjectPage({ kind: 'User', name: subject });
  return [path, { ...changes, ...range }] as const;
}

function Use({ of: u }: { of: Schemas['FirstUse'] }) {
  return (
    <>
      <b>
        <Name plain most={30}>
          {u.verb}
        </Name>
      </b>{' '}
      <Name most={60}>{whatOf(u)}</Name>
      {u.name && (
        <>
          {' '}
          <Name most={50}>{u.name}</Name>
        </>
      )}
      {u.namespace && (
        <span className="soft">
          {' '}
          in <Name most={50}>{u.namespace}</Name>
        </span>
      )}
    </>
  );
}

/** Held shows a subject of a binding. */
export function Held({ by }: { by: string }) {
  const s = keyed(by);
  return s.kind === 'Group' ? (
    <>
      <span className="soft">group </span>
      <Name most={60}>{s.name}</Name>
    </>
  ) : (
    <Subject most={60}>{userOf(s)}</Subject>
  );
}
