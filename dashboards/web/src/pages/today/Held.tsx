import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name, Subject } from '../../kit/Name';
import { userOf } from '../../kit/Rule';
import { Tag } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import { clean, count } from '../../kit/words';
import { subjectPage } from './links';
import { SECRETS, useIdle, useSecrets, type Idle } from './queries';
import css from './today.module.css';

/** Rows that are shown at once. */
const MOST = { dangers: 6, names: 2, secrets: 5 };

/** Dangers answers: who holds what is dangerous and never used it? */
export function Dangers() {
  const { to } = useLinks();
  const { asks, idle } = useIdle();
  const columns: Column<Idle>[] = [
    {
      id: 'right',
      head: 'Right',
      width: '132px',
      leads: true,
      cell: (d) => (
        <Tag tone={d.id === 'cluster-admin' ? 'critical' : 'warn'} title={clean(d.text)}>
          {clean(d.id)}
        </Tag>
      ),
    },
    { id: 'who', head: 'Held, and never used, by', width: 'minmax(0, 1fr)', wrap: true, cell: (d) => <Holders of={d} /> },
  ];
  const system = (d: Idle) => (d.holders.some((h) => h.kind !== 'ServiceAccount' && h.name.startsWith('system:')) ? 'yes' : null);
  return (
    <Card
      title="Dangerous and unused"
      note={
        asks.data?.since && (
          <>
            since <Time at={asks.data.since} />
          </>
        )
      }
      flush
      actions={
        <>
          <a className="button" href={to('/whatif', { range: null, from: null, to: null })}>
            What if?
          </a>
          <a className="button" href={to('/subjects', { show: 'idle' })}>
            All
          </a>
        </>
      }
    >
      <Question
        asks={asks}
        lines={MOST.dangers}
        empty={(a) => !idle.length && (a.known ? 'Whoever holds a dangerous right has used it.' : 'No policy of this cluster is known.')}
      >
        {(a) => (
          <>
            {a.missing?.length > 0 && (
              <p className={css.words} data-doubt>
                Not all is known: {a.missing.map(clean).join(', ')}
              </p>
            )}
            <DataTable
              label="Dangerous and unused"
              columns={columns}
              rows={idle.slice(0, MOST.dangers)}
              rowKey={(d) => d.id}
              href={(d) => to('/subjects', { flag: d.id, show: 'idle', system: system(d) })}
            />
            {idle.length > MOST.dangers && (
              <p className={css.rest}>
                <a href={to('/subjects', { show: 'idle' })}>{count(idle.length - MOST.dangers)} more kinds of danger</a>
              </p>
            )}
            {a.system > 0 && (
              <p className={css.rest}>
                Without what Kubernetes gives itself: system:masters may do everything and needs no binding.{' '}
                <a href={to('/subjects', { show: 'idle', system: 'yes' })}>With it</a>
              </p>
            )}
          </>
        )}
      </Question>
    </Card>
  );
}

function Holders({ of: { holders } }: { of: Idle }) {
  const { to } = useLinks();
  return (
    <>
      {holders.slice(0, MOST.names).map((h, i) => (
        <span key={i}>
          {i > 0 && ', '}
          <a className={css.inner} href={to(...subjectPage(h))}>
            {h.kind === 'Group' ? (
              <>
                <span className="soft">group </span>
                <Name most={60}>{h.name}</Name>
              </>
            ) : (
              <Subject most={60}>{userOf(h)}</Subject>
            )}
          </a>
        </span>
      ))}
      {holders.length > MOST.names && <span className="soft"> and {count(holders.length - MOST.names)} more</span>}
    </>
  );
}

type Toucher = Schemas['FacetValue'];

/** Secrets answers: who touched Secrets? */
export function Secrets() {
  const { to } = useLinks();
  const asks = useSecrets();
  const columns: Column<Toucher>[] = [
    { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', leads: true, cell: (v) => <Subject most={60}>{v.value}</Subject> },
    { id: 'requests', head: 'Requests', width: '76px', number: true, cell: (v) => count(v.requests) },
  ];
  return (
    <Card
      title="Who touched Secrets"
      note="without Kubernetes’ own"
      flush
      actions={
        <a className="button" href={to('/explore', SECRETS)}>
          All requests
        </a>
      }
    >
      <Question asks={asks} lines={MOST.secrets} empty={(a) => !a.requests && 'Nobody asked for Secrets in this range.'}>
        {(a) => (
          <DataTable
            label="Who touched Secrets"
            columns={columns}
            rows={(a.facets[0]?.values ?? []).slice(0, MOST.secrets)}
            rowKey={(v) => v.value}
            href={(v) => to('/explore', { resource: 'secrets', subject: v.value })}
          />
        )}
      </Question>
    </Card>
  );
}
