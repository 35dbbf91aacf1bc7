import { useLinks } from '../../kit/address';
import { Card, Empty } from '../../kit/Card';
import { DataTable, useColumns, useSort, type Column } from '../../kit/DataTable';
import { Filters, FindFilter, PickFilter } from '../../kit/Filter';
import { Name, Names, Who } from '../../kit/Name';
import { filtersOf } from '../../kit/request';
import { Tag } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { count, plural } from '../../kit/words';
import { askedFor, CLASSES, classOf, keyOf, type Access, type Drafted } from './words';
import css from './whatif.module.css';

const bindings = (grants: Access['before']) => [...new Set(grants.map((g) => g.binding))];

const COLUMNS: Column<Access>[] = [
  { id: 'class', head: 'Then', width: '108px', sorts: (a) => (CLASSES.length - classOf(a.class).rank) * 1e13 + a.count, cell: (a) => <Tag tone={classOf(a.class).tone}>{classOf(a.class).label}</Tag> },
  { id: 'subject', head: 'Who', width: 'minmax(120px, 1fr)', sorts: (a) => a.subject, cell: (a) => <Who subject={a.subject} most={90} /> },
  { id: 'access', head: 'Asked for', width: 'minmax(200px, 2.4fr)', leads: true, wrap: true, cell: (a) => <Asked of={a} /> },
  { id: 'count', head: 'Requests', width: '82px', number: true, sorts: (a) => a.count, cell: (a) => count(a.count) },
  { id: 'first', head: 'First', width: 'fit-content(160px)', extra: true, labelled: true, sorts: (a) => Date.parse(a.first), cell: (a) => <span className="soft"><When at={a.first} /></span> },
  { id: 'last', head: 'Last', width: 'fit-content(160px)', labelled: true, sorts: (a) => Date.parse(a.last), cell: (a) => <span className="soft"><When at={a.last} /></span> },
  { id: 'before', head: 'Allowed now by', width: 'minmax(130px, 1.3fr)', wrap: true, labelled: true, cell: (a) => <By list={bindings(a.before)} /> },
  { id: 'after', head: 'Then by', width: 'minmax(110px, 1.1fr)', wrap: true, labelled: true, cell: (a) => <By list={bindings(a.after)} missing={a.missing} /> },
  { id: 'because', head: 'Because of', width: 'minmax(130px, 1.2fr)', wrap: true, labelled: true, extra: true, cell: (a) => <Names list={a.because} most={3} /> },
  { id: 'groups', head: 'Groups', width: 'minmax(120px, 1fr)', wrap: true, labelled: true, extra: true, cell: (a) => <Names list={a.groups} most={3} /> },
  { id: 'sample', head: 'Examples', width: '92px', labelled: true, cell: (a) => <Examples of={a} /> },
];

/** Rows that are shown at once, so that what follows the table is in reach. */
const MOST = 12;

/** Accesses lists those that change, what hurts most first. */
export function Accesses({ of: a }: { of: Drafted }) {
  const { params, here, to } = useLinks();
  const { shown, pick } = useColumns(COLUMNS);
  const [kind, find] = [params.get('class') ?? '', (params.get('find') ?? '').toLowerCase()];
  const rows = a.accesses.filter((x) => (!kind || x.class === kind) && (!find || words(x).includes(find)));
  const { sorted, sort } = useSort(COLUMNS, rows, 'class');
  const all = params.get('rows') === 'all';
  if (!a.accesses.length) return null;
  return (
    <Card title="Accesses that change" note={`${count(rows.length)} of ${count(a.accesses.length + a.more)}${a.more ? `; ${count(a.more)} more are not listed` : ''}`} actions={pick} flush>
      <div className={css.filters}>
        <Filters names={['class', 'find']}>
          <PickFilter name="class" label="Then" values={CLASSES.filter((c) => a.summary[c.count] > 0 || c.id === kind).map((c) => [c.id, c.label])} />
          <FindFilter name="find" label="Find" hint="subject, resource, binding" width="230px" />
        </Filters>
      </div>
      {rows.length > 0
        ? <DataTable label="Accesses that change" columns={shown} rows={all ? sorted : sorted.slice(0, MOST)} rowKey={keyOf} sort={sort} href={(x) => (x.check ? undefined : to('/explore', filtersOf(partsOf(x))))} />
        : <Empty>{plural(a.accesses.length, 'access', 'accesses')} are listed, and none of them is as asked.</Empty>}
      {!all && rows.length > MOST && <p className={css.rest}><a href={here({ rows: 'all' })} data-row>All {count(rows.length)}</a></p>}
    </Card>
  );
}

/** partsOf is what Explore selects an access's requests by. */
function partsOf(a: Access) {
  return { subject: a.subject, verb: a.verb, resource: a.resource, group: a.apiGroup, subresource: a.subresource, namespace: a.namespace, path: a.path ?? '', ...(a.verb !== 'create' && a.name && { name: a.name }) };
}

function words(a: Access): string {
  return [a.subject, a.verb, askedFor(a), a.name, a.namespace, a.check, ...bindings(a.before), ...bindings(a.after)].join(' ').toLowerCase();
}

/** Asked says what was asked for, and behind which check. */
function Asked({ of: a }: { of: Access }) {
  return (
    <>
      <b className={css.verb}><Name plain most={30}>{a.verb}</Name></b> <Name most={160}>{askedFor(a)}</Name>
      {a.name && <> <Name most={120}>{a.name}</Name></>}
      {a.namespace && <span className="soft"> in <Name most={80}>{a.namespace}</Name></span>}
      {a.check && <span className="soft"> (<Name plain most={40}>{a.check}</Name>)</span>}
    </>
  );
}

function By({ list, missing }: { list: string[]; missing?: string[] | undefined }) {
  if (missing?.length) return <span className="soft">not known: <Names list={missing} most={2} /></span>;
  return list.length ? <Names list={list} most={2} /> : <span className="soft">nothing</span>;
}

/** Examples lead to requests that asked for it. */
function Examples({ of: a }: { of: Access }) {
  const { here } = useLinks();
  if (!a.sample.length) return <span className="soft">–</span>;
  return <span className={css.examples}>{a.sample.map((id, i) => <a key={id} href={here({ why: id, request: null })} aria-label={`Request ${i + 1} that asked for it`}>{i + 1}</a>)}</span>;
}
