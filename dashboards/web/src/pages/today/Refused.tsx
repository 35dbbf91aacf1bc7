import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name, Subject } from '../../kit/Name';
import { filtersOf, whatOf } from '../../kit/request';
import { When } from '../../kit/Time';
import { clean, count, plural, short, table } from '../../kit/words';
import { REFUSED, useRefusals } from './queries';
import css from './today.module.css';

/** Rows that are shown at once. */
const MOST = { changes: 4, refusals: 6 };

/** CAUSES of refusals, in words. */
const CAUSES: Record<string, string> = table({
  'never-allowed': 'never allowed',
  'policy-change': 'a policy change',
  authorizer: 'another authorizer',
  admission: 'admission',
  'namespace-gone': 'namespace gone',
  check: 'a check behind RBAC',
  impersonation: 'impersonation',
  anonymous: 'not authenticated',
  drift: 'drift',
  unknown: 'not known',
});

type Change = Schemas['RefusingChange'];
type Refusal = Schemas['Refusal'];

const CHANGES: Column<Change>[] = [
  {
    id: 'change',
    head: 'Change',
    width: 'minmax(0, 2.2fr)',
    leads: true,
    cell: (c) => (
      <>
        <b>
          <Name plain most={30}>
            {c.write.verb ?? c.write.what}
          </Name>
        </b>{' '}
        <Name most={110}>{c.write.object}</Name>
      </>
    ),
  },
  { id: 'user', head: 'By', width: 'minmax(0, 1fr)', labelled: true, cell: (c) => <Subject most={60}>{c.write.user}</Subject> },
  {
    id: 'at',
    head: 'At',
    width: 'fit-content(150px)',
    cell: (c) => (
      <span className="soft">
        <When at={c.write.notAfter} />
      </span>
    ),
  },
  { id: 'requests', head: 'Refused', width: '64px', number: true, cell: (c) => count(c.requests) },
];

const REFUSALS: Column<Refusal>[] = [
  { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', leads: true, cell: (r) => <Subject most={60}>{r.subject}</Subject> },
  {
    id: 'what',
    head: 'Asked for',
    width: 'minmax(0, 1fr)',
    cell: (r) => (
      <>
        <b>
          <Name plain most={30}>
            {r.verb}
          </Name>
        </b>{' '}
        <Name most={60}>{whatOf(r)}</Name>
      </>
    ),
  },
  {
    id: 'why',
    head: 'Why',
    width: 'minmax(0, 1fr)',
    cell: (r) => (
      <span title={clean(r.text)}>
        {CAUSES[r.cause] ?? <Name most={40}>{r.cause}</Name>}
        {r.plugin && (
          <span className="soft">
            {' '}
            <Name most={40}>{r.plugin}</Name>
          </span>
        )}
      </span>
    ),
  },
  { id: 'requests', head: 'Refused', width: '64px', number: true, cell: (r) => count(r.requests) },
];

/** Refused answers: who is refused, and why? */
export function Refused() {
  const { to, here, params } = useLinks();
  const asks = useRefusals();
  const only = params.get('cause');
  const filters = (r: Refusal) => ({
    ...filtersOf({ ...r, name: '', namespace: r.namespaceCount === 1 ? r.namespaces[0] : '' }),
    decision: r.recorded,
  });
  return (
    <Card
      title="Refused, and why"
      note={asks.data && `${plural(asks.data.requests, 'request')}, without Kubernetes’ own`}
      flush
      actions={
        <a className="button" href={to('/explore', REFUSED)}>
          All requests
        </a>
      }
    >
      <Question asks={asks} lines={10} empty={(a) => !a.refusals.length && 'Nobody was refused anything in this range.'}>
        {(a) => {
          const shown = a.refusals.filter((r) => !only || r.cause === only);
          return (
            <>
              {!a.known && (
                <p className={css.words} data-doubt>
                  No policy of this cluster is known: no refusal is traced to a change.
                </p>
              )}
              {a.changes.length > 0 && <h3 className={css.part}>By the change that made them</h3>}
              {a.changes.length > 0 && (
                <DataTable
                  label="Changes that made refusals"
                  columns={CHANGES}
                  rows={a.changes.slice(0, MOST.changes)}
                  rowKey={(c) => JSON.stringify([c.write.object, c.write.notAfter, c.write.resourceVersion])}
                  href={(c) => to('/changes', c.write.auditID ? { id: c.write.auditID } : { object: c.write.object })}
                />
              )}
              {a.changes.length > MOST.changes && (
                <p className={css.rest}>
                  <a href={to('/changes')}>All {count(a.changes.length)} changes that made refusals</a>
                </p>
              )}
              <h3 className={css.part}>By cause</h3>
              <ul className={css.causes}>
                {causesOf(a.refusals).map(([cause, n]) => (
                  <li key={cause}>
                    <a href={here({ cause: cause === only ? null : cause })} aria-current={cause === only || undefined}>
                      {CAUSES[cause] ?? clean(short(cause, 40))} <b>{count(n)}</b>
                    </a>
                  </li>
                ))}
              </ul>
              <DataTable
                label="Refusals"
                columns={REFUSALS}
                rows={shown.slice(0, MOST.refusals)}
                rowKey={(r) => `${r.auditID} ${r.cause} ${r.code}`}
                href={(r) => to('/explore', filters(r))}
              />
              {a.more && <p className={css.rest}>Counted of the {count(a.refusals.length)} most frequent.</p>}
            </>
          );
        }}
      </Question>
    </Card>
  );
}

/** causesOf counts requests by cause, most first. */
function causesOf(list: Refusal[]): [cause: string, requests: number][] {
  const by = new Map<string, number>();
  for (const r of list) by.set(r.cause, (by.get(r.cause) ?? 0) + r.requests);
  return [...by].sort((x, y) => y[1] - x[1]);
}
