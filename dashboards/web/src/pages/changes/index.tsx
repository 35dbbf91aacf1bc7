import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Grid, Question } from '../../kit/Card';
import { Chart } from '../../kit/Chart';
import { DataTable, type Column } from '../../kit/DataTable';
import { Filters, FindFilter, PickFilter } from '../../kit/Filter';
import { Name, Names, Who } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { useScope } from '../../kit/scope';
import { When } from '../../kit/Time';
import { count, plural } from '../../kit/words';
import { Detail, narrow } from './Detail';
import { FILTERS, keyOf, useRefusals, useWrites, type Write } from './queries';
import { barsOf, EFFECTS } from './words';
import { Author, Effect } from './Write';
import css from './changes.module.css';

/** Changes answers: who changed the policy, and what came of it? */
export default function Changes() {
  const { params } = useLinks();
  const id = params.get('id');
  return (
    <Page title="Changes" lead="Who wrote roles and bindings in this range. Open a write to see what came of it.">
      <Filters names={FILTERS}>
        <PickFilter name="effect" label="Effect" values={Object.entries(EFFECTS).map(([e, { text }]) => [e, text])} />
        <FindFilter name="author" label="Author" hint="any" width="220px" />
        <FindFilter name="object" label="Object" hint="any" width="260px" />
      </Filters>
      <Strip />
      {id ? <Opened id={id} /> : <Writes />}
      <Refusals />
    </Page>
  );
}

/** Opened shows a write beside the list; on a narrow screen above it, as the list may be long. */
function Opened({ id }: { id: string }) {
  if (narrow()) return <><Detail id={id} /><Writes /></>;
  return <Grid columns="minmax(0, 1fr) minmax(0, 1.15fr)"><Writes brief /><Detail id={id} /></Grid>;
}

/** Strip shows the writes over time. */
function Strip() {
  const { change } = useLinks();
  const { from, to } = useScope();
  const { asks, all, rows } = useWrites();
  const oldest = all.at(-1);
  return (
    <Card title="Writes over time" note={`${asks.hasNextPage ? `the newest ${count(all.length)}; ` : ''}drag to look at a part of it`}>
      <Question asks={asks} lines={3} empty={() => !rows.length && 'There are no writes to show.'}>
        {() => {
          const begin = asks.hasNextPage && oldest ? oldest.time : from;
          const { seconds, times, values } = barsOf(rows, begin, to);
          const series = Object.entries(EFFECTS).map(([e, of]) => ({ label: of.text, tone: of.series, values: values[e] ?? [] }));
          return (
            <Chart label="Writes to the policy over time, by effect" from={begin} to={to} seconds={seconds} times={times} height={110}
              series={series.filter((s) => s.values.some((n) => n > 0))} onPick={(a, b) => change({ from: a, to: b, range: null })} />
          );
        }}
      </Question>
    </Card>
  );
}

const COLUMNS: Column<Write>[] = [
  { id: 'time', head: 'When', width: 'fit-content(160px)', cell: (w) => <span className="soft"><When at={w.time} /></span> },
  { id: 'who', head: 'Who', width: 'minmax(110px, 1fr)', cell: (w) => <Author of={w} /> },
  { id: 'verb', head: 'Verb', width: '118px', cell: (w) => <b className={css.verb}><Name plain most={30}>{w.verb}</Name></b> },
  { id: 'object', head: 'Object', width: 'minmax(150px, 2fr)', leads: true, cell: (w) => <Name most={200}>{w.object}</Name> },
  { id: 'effect', head: 'Effect', width: '140px', cell: (w) => <Effect of={w.effect} /> },
];

/** BRIEF are the columns while a write is open beside the list. */
const BRIEF = COLUMNS.filter((c) => ['time', 'object', 'effect'].includes(c.id));

function Writes({ brief }: { brief?: boolean }) {
  const { params, here } = useLinks();
  const { asks, all, rows, filtered } = useWrites();
  const id = params.get('id');
  const open = rows.find((w) => w.auditID === id);
  const known = asks.data?.pages[0]?.known !== false;
  const looked = asks.hasNextPage ? `the newest ${count(all.length)} writes` : plural(all.length, 'write');
  const seen = filtered ? `${count(rows.length)} of ${looked}` : looked;
  const older = asks.hasNextPage ? () => void asks.fetchNextPage() : undefined;
  return (
    <Card title="Writes" note={asks.data && `${seen}, the newest first`} flush>
      <Question asks={asks} lines={10} empty={() => !all.length && 'Nobody wrote a role or a binding in this range.'}>
        {() => (
          <>
            {!known && <p className={css.warn}>No policy of this cluster is known. So what a write changed is not known either.</p>}
            {rows.length > 0 ? (
              <DataTable label="Writes" columns={brief ? BRIEF : COLUMNS} rows={rows} rowKey={keyOf} current={open ? keyOf(open) : null}
                href={(w) => (w.auditID ? here({ id: w.auditID }) : undefined)}
                more={filtered ? undefined : older} pending={asks.isFetchingNextPage} />
            ) : <p className={css.none}>No write among these matches the filters.</p>}
            {filtered && older && (
              <p className={css.none}>
                <button type="button" disabled={asks.isFetchingNextPage} onClick={older}>Look at older writes</button>
              </p>
            )}
          </>
        )}
      </Question>
    </Card>
  );
}

const NONE = 'No refusal of this range was made by a change of policy.';
const UNKNOWN = 'No policy of this cluster is known. So no refusal is traced to a change.';

type Made = Schemas['RefusingChange'];

/** Refusals lists the writes that made refusals of this range. */
function Refusals() {
  const { params, here } = useLinks();
  const asks = useRefusals();
  const columns: Column<Made>[] = [
    { id: 'object', head: 'Change', width: 'minmax(150px, 1.6fr)', leads: true, cell: (m) => <Name most={200}>{m.write.object}</Name> },
    { id: 'what', head: 'What', width: '118px', cell: (m) => <Name plain most={40}>{m.write.verb ?? m.write.what}</Name> },
    { id: 'when', head: 'When', width: 'fit-content(160px)', cell: (m) => <span className="soft"><When at={m.write.notAfter} /></span> },
    { id: 'by', head: 'By', width: 'minmax(100px, .9fr)', labelled: true, cell: (m) => <By user={m.write.user} /> },
    { id: 'whose', head: 'Refused since', width: 'minmax(140px, 1.6fr)', labelled: true, cell: Whose },
    { id: 'requests', head: 'Requests', width: '72px', number: true, cell: (m) => count(m.requests) },
  ];
  const key = (m: Made) => JSON.stringify([m.write.auditID, m.write.object, m.write.notAfter]);
  const current = asks.data?.changes.find((m) => m.write.auditID && m.write.auditID === params.get('id'));
  return (
    <Card title="Refusals by the change that made them" note="requests of this range that RBAC allowed until a write" flush>
      <Question asks={asks} lines={5} empty={(a) => !a.changes.length && (a.known ? NONE : UNKNOWN)}>
        {(a) => (
          <DataTable label="Refusals by change" columns={columns} rows={a.changes} rowKey={key} current={current ? key(current) : null}
            href={(m) => (m.write.auditID ? here({ id: m.write.auditID }) : undefined)} />
        )}
      </Question>
    </Card>
  );
}

function Whose(m: Made) {
  return <Names list={m.subjects} most={3} />;
}

function By({ user }: { user?: string | undefined }) {
  return user ? <Who subject={user} most={80} /> : <span className="soft">–</span>;
}
