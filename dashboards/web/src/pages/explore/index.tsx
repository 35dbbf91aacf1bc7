import type { Schemas } from '../../api/ask';
import { useConstant } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, useColumns, type Column } from '../../kit/DataTable';
import { Filters, PickFilter, TextFilter } from '../../kit/Filter';
import { Name, Request, Who } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { Decision, Outcome } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { count, DECISIONS, label, OUTCOMES, plural, sentence } from '../../kit/words';
import { FILTERS, useEvents } from './queries';
import css from './explore.module.css';

type Event = Schemas['Event'];

const COLUMNS: Column<Event>[] = [
  { id: 'time', head: 'Time', width: 'fit-content(150px)', cell: (e) => <When at={e.time} /> },
  { id: 'subject', head: 'Subject', width: 'minmax(130px, 1.2fr)', cell: (e) => <Who subject={e.subject} /> },
  { id: 'request', head: 'Request', width: 'minmax(200px, 2.4fr)', leads: true, cell: (e) => <Request verb={e.verb} uri={e.requestURI} /> },
  { id: 'code', head: 'Status', width: '52px', number: true, cell: (e) => <span className={e.code >= 400 ? css.refused : 'soft'}>{e.code || '–'}</span> },
  { id: 'recorded', head: 'Decision', width: '106px', cell: (e) => <Decision of={e.recorded} /> },
  { id: 'replayed', head: 'Replay', width: '106px', extra: true, cell: (e) => <Decision of={e.replayed} /> },
  { id: 'outcome', head: 'Verdict', width: '108px', cell: (e) => <Outcome of={e.outcome} /> },
  { id: 'because', head: 'Because', width: 'minmax(110px, 1.2fr)', cell: (e) => <span className="soft"><Because event={e} /></span> },
  { id: 'class', head: 'Class', width: 'minmax(100px, 1fr)', extra: true, cell: (e) => <Name>{e.class}</Name> },
  { id: 'authorizer', head: 'Authorizer', width: '110px', extra: true, cell: (e) => <Name>{e.authorizer}</Name> },
  { id: 'stage', head: 'Stage', width: '130px', extra: true, cell: (e) => <Name plain>{e.stage}</Name> },
  { id: 'id', head: 'Audit ID', width: 'minmax(120px, 1.2fr)', extra: true, cell: (e) => <Name>{e.auditID}</Name> },
];

/** Explore shows requests, newest first, and what chooses them. */
export default function Explore() {
  const { params, here } = useLinks();
  const asks = useEvents();
  const { shown, pick } = useColumns(COLUMNS);
  const filtered = FILTERS.some((f) => params.get(f));
  return (
    <Page title="Explore" lead="Every request of the audit log, newest first. Open one to see why it was decided that way.">
      <Filters names={FILTERS}>
        <TextFilter name="subject" label="Subject" width="210px" />
        <TextFilter name="verb" label="Verb" width="90px" />
        <TextFilter name="resource" label="Resource" />
        <PickFilter name="decision" label="Decision" values={Object.entries(DECISIONS)} />
        <PickFilter name="outcome" label="Verdict" values={OUTCOMES.map((o) => [o, label(o)])} />
        {params.get('class') && <a className="button" href={here({ class: null })} aria-label="Remove the filter by class">Class <Name most={60}>{params.get('class')}</Name> <span aria-hidden>✕</span></a>}
      </Filters>
      <Card title="Requests" note={<Loaded asks={asks} />} actions={pick} flush>
        <Question asks={asks} lines={14} empty={(a) => !a.pages[0]?.events.length && (filtered ? 'No request in this range matches these filters.' : 'There are no requests in this range.')}>
          {(answer) => (
            <DataTable label="Requests" columns={shown} rows={answer.pages.flatMap((p) => p.events)} rowKey={(e) => e.request + e.stage}
              href={(e) => (e.auditID ? here({ why: e.auditID, request: e.request }) : undefined)}
              current={params.get('why') && answer.pages.flatMap((p) => p.events).filter((e) => e.request === params.get('request')).map((e) => e.request + e.stage)[0]}
              more={asks.hasNextPage ? () => void asks.fetchNextPage() : undefined} pending={asks.isFetchingNextPage} />
          )}
        </Question>
      </Card>
    </Page>
  );
}

function Loaded({ asks }: { asks: ReturnType<typeof useEvents> }) {
  const n = asks.data?.pages.reduce((sum, p) => sum + p.events.length, 0);
  if (!n) return null;
  return asks.hasNextPage ? `the newest ${count(n)}; scroll for more` : plural(n, 'request');
}

/** Because words the verdict in a few words. */
function Because({ event: e }: { event: Event }) {
  const meaning = useConstant('classes').data?.classes.find((c) => c.class === e.class)?.text;
  if (e.outcome !== 'match') return <Name plain most={200}>{sentence(e.cause || meaning)}</Name>;
  if (e.replayed === 'forbid') return 'no grant allows it';
  if (e.grantCount) return plural(e.grantCount, 'grant');
  return { masters: 'group system:masters', node: 'node authorizer' }[e.authorizer] ?? '';
}
