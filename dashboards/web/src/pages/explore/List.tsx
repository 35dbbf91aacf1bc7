// The requests: all of a range, page after page, or live.
import { useEffect, useMemo, useRef, useState } from 'react';
import { useConstant } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Failed, Question } from '../../kit/Card';
import { DataTable, useColumns, type Column } from '../../kit/DataTable';
import { Name, Request, Who } from '../../kit/Name';
import { whatOf } from '../../kit/request';
import { Decision, Outcome } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { count, plural, sentence } from '../../kit/words';
import { Copies } from './Copies';
import type { Condition } from './conditions';
import { LIVE, useEvents, useNewest, type Event } from './queries';
import css from './explore.module.css';

const COLUMNS: Column<Event>[] = [
  { id: 'time', head: 'Time', width: 'fit-content(150px)', cell: (e) => <When at={e.time} /> },
  { id: 'subject', head: 'Subject', width: 'minmax(120px, 1.2fr)', cell: (e) => <Who subject={e.subject} /> },
  { id: 'by', head: 'Impersonated by', width: 'minmax(110px, 1fr)', extra: true, labelled: true, cell: (e) => (e.impersonatedBy ? <Who subject={e.impersonatedBy} /> : null) },
  { id: 'request', head: 'Request', width: 'minmax(180px, 2.4fr)', leads: true, cell: (e) => <Request verb={e.verb} uri={e.requestURI} /> },
  { id: 'verb', head: 'Verb', width: '70px', extra: true, cell: (e) => <Name plain>{e.verb}</Name> },
  { id: 'apigroup', head: 'API group', width: 'minmax(90px, .8fr)', extra: true, labelled: true, cell: (e) => <Name>{e.group}</Name> },
  { id: 'resource', head: 'Resource', width: 'minmax(90px, .8fr)', extra: true, labelled: true, cell: (e) => <Name>{whatOf({ resource: e.resource ?? '', subresource: e.subresource })}</Name> },
  { id: 'namespace', head: 'Namespace', width: 'minmax(90px, .8fr)', extra: true, labelled: true, cell: (e) => <Name>{e.namespace}</Name> },
  { id: 'name', head: 'Name', width: 'minmax(90px, 1fr)', extra: true, labelled: true, cell: (e) => <Name>{e.name}</Name> },
  { id: 'uri', head: 'Path and query', width: 'minmax(160px, 2fr)', extra: true, cell: (e) => <Name most={400}>{e.requestURI}</Name> },
  { id: 'code', head: 'Status', width: '50px', number: true, cell: (e) => <span className={e.code >= 400 ? css.refused : 'soft'}>{e.code || '–'}</span> },
  { id: 'recorded', head: 'Decision', width: '100px', cell: (e) => <Decision of={e.recorded} /> },
  { id: 'replayed', head: 'Replay', width: '100px', extra: true, labelled: true, cell: (e) => <Decision of={e.replayed} /> },
  { id: 'outcome', head: 'Verdict', width: '104px', cell: (e) => <Outcome of={e.outcome} /> },
  { id: 'because', head: 'Because', width: 'minmax(100px, 1.1fr)', cell: (e) => <span className="soft"><Because event={e} /></span> },
  { id: 'class', head: 'Class', width: 'minmax(100px, 1fr)', extra: true, labelled: true, cell: (e) => <Name>{e.class}</Name> },
  { id: 'authorizer', head: 'Authorizer', width: '110px', extra: true, labelled: true, cell: (e) => <Name>{e.authorizer}</Name> },
  { id: 'address', head: 'Address', width: 'minmax(90px, .7fr)', extra: true, labelled: true, cell: (e) => <Name>{e.sourceIP}</Name> },
  { id: 'agent', head: 'User agent', width: 'minmax(120px, 1.2fr)', extra: true, labelled: true, cell: (e) => <Name>{e.userAgent}</Name> },
  { id: 'stage', head: 'Stage', width: '130px', extra: true, cell: (e) => <Name plain>{e.stage}</Name> },
  { id: 'id', head: 'Audit ID', width: 'minmax(120px, 1.2fr)', extra: true, cell: (e) => <Name>{e.auditID}</Name> },
];

const keyOf = (e: Event) => e.request + e.stage;

/** List shows the requests that conditions select. */
export function List({ list }: { list: Condition[] }) {
  const { params, here } = useLinks();
  const live = params.get('live') !== null;
  const asks = useEvents(list, !live);
  const tail = useTail(list, live);
  const pages = asks.data?.pages;
  const listed = useMemo(() => (pages ?? []).flatMap((p) => p.events), [pages]);
  const rows = live ? tail.shown : listed;
  const open = params.get('why') && params.get('request');
  const current = useMemo(() => (open ? rows.find((e) => e.request === open) : undefined), [rows, open]);
  const { shown, pick } = useColumns(COLUMNS);
  useConstant('classes'); // rows ask for it: with the first questions, and not when there are rows
  const table = (
    <DataTable label="Requests" columns={shown} rows={rows} rowKey={keyOf} href={(e) => (e.auditID ? here({ why: e.auditID, request: e.request }) : undefined)}
      current={current && keyOf(current)}
      more={!live && asks.hasNextPage ? () => void asks.fetchNextPage() : undefined} pending={!live && asks.isFetchingNextPage} />
  );
  const none = list.length ? 'No request in this range matches these filters.' : 'There are no requests in this range.';
  const note = live ? <span className={css.live} data-paused={tail.paused || undefined}>{tail.paused ? 'paused' : `live: the newest ${LIVE}, as they come`}</span>
    : rows.length ? (asks.hasNextPage ? `the newest ${count(rows.length)}; scroll for more` : plural(rows.length, 'request')) : null;
  return (
    <Card title="Requests" note={note} flush actions={
      <>
        <span role="status">{tail.waiting > 0 && <button type="button" className={css.news} onClick={tail.catchUp}>Show {plural(tail.waiting, 'new request')}{tail.waiting >= LIVE && ' or more'}</button>}</span>
        {live && <button type="button" aria-pressed={tail.held} onClick={() => tail.hold(!tail.held)}>Pause</button>}
        <a className="button" href={here({ live: live ? null : 'on' })} aria-current={live || undefined}>{live ? 'Stop live' : 'Live'}</a>
        <Copies list={list} rows={rows} />
        {pick}
      </>
    }>
      {!live ? <Question asks={asks} lines={14} empty={() => !rows.length && none}>{() => table}</Question>
        : tail.asks.error ? <Failed error={tail.asks.error} again={() => void tail.asks.refetch()} />
        : rows.length ? table : <p className="soft" role="status">{tail.asks.isPending ? 'Asking …' : 'No request so far. They are shown as they come.'}</p>}
    </Card>
  );
}

/** useTail follows the newest requests. What is shown stays while it is paused, by the button or because somebody is at a row. */
function useTail(list: Condition[], on: boolean) {
  const asks = useNewest(list, on);
  const { params } = useLinks();
  const [held, hold] = useState(false);
  const [shown, setShown] = useState<Event[] | undefined>();
  const question = JSON.stringify([on, list]);
  const of = useRef(question);
  const arrived = asks.data?.events;
  const open = params.get('why') !== null;
  useEffect(() => {
    if (!arrived) return;
    const other = of.current !== question;
    of.current = question;
    setShown((s) => (s && !other && (held || open || busy()) ? s : arrived));
  }, [arrived, held, open, question]);
  const known = new Set((shown ?? []).map(keyOf));
  const waiting = on && shown && arrived ? arrived.filter((e) => !known.has(keyOf(e))).length : 0;
  return { asks, shown: on ? (shown ?? arrived ?? []) : [], held, hold, paused: held || waiting > 0, waiting, catchUp: () => setShown(arrived) };
}

/** busy reports whether somebody is at a row, or selects text. */
function busy(): boolean {
  return document.activeElement?.closest('[role="row"]') !== null || String(getSelection()) !== '';
}

/** Because words the verdict in a few words. */
function Because({ event: e }: { event: Event }) {
  const meaning = useConstant('classes').data?.classes.find((c) => c.class === e.class)?.text;
  if (e.outcome !== 'match') return <Name plain most={200}>{sentence(e.cause || meaning)}</Name>;
  if (e.replayed === 'forbid') return 'no grant allows it';
  if (e.grantCount) return plural(e.grantCount, 'grant');
  return e.authorizer === 'masters' ? 'group system:masters' : e.authorizer === 'node' ? 'node authorizer' : '';
}
