import type { Answer, Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { Text } from '../../kit/Copy';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name, Request } from '../../kit/Name';
import { Tag } from '../../kit/Tag';
import { lasting, Time } from '../../kit/Time';
import { clean, count, plural } from '../../kit/words';
import { useCompleteness } from './queries';
import css from './trust.module.css';

type Server = Schemas['CompletenessServer'];

const SERVERS: Column<Server>[] = [
  { id: 'name', head: 'Apiserver', width: 'minmax(0, 1fr)', cell: (s) => (s.name ? <Name>{s.name}</Name> : <span className="soft">(the only one)</span>) },
  { id: 'sent', head: 'Sent', width: '84px', number: true, cell: (s) => (s.measured ? count(s.measured.sent) : '–') },
  { id: 'events', head: 'Arrived', width: '84px', number: true, cell: (s) => count(s.events) },
  { id: 'missing', head: 'Missing', width: '70px', number: true, cell: (s) => (s.measured ? <span className={s.measured.missing ? 'bad' : undefined}>{count(s.measured.missing)}</span> : '–') },
  { id: 'last', head: 'Posted last', width: 'minmax(90px, 150px)', labelled: true, cell: (s) => (s.silentSeconds ? <span className="bad">silent for {lasting(s.silentSeconds)}</span> : <span className="soft"><Time at={s.lastPost} /></span>) },
];

/** Arrived shows what the apiservers sent and what of it is missing. */
export function Arrived() {
  const asks = useCompleteness();
  return (
    <Card title="What arrived" note="of what the apiservers sent">
      <Question asks={asks} lines={6}>
        {(a) => (
          <div className={css.parts}>
            {a.apiservers.length > 0 ? <DataTable label="Apiservers" columns={SERVERS} rows={a.apiservers} rowKey={(s) => s.name} />
              : <p className="soft">No apiserver is known to have sent anything: the events of this range were imported. Whether the log they come from is whole can only be told by the requests in it.</p>}
            <Stretches servers={a.apiservers} />
            <Pairs pairs={a.pairs} />
            <Problems list={a.problems} />
          </div>
        )}
      </Question>
    </Card>
  );
}

/** Stretches are those in which something is missing, or was lost by one way and came another. */
function Stretches({ servers }: { servers: Server[] }) {
  const list = servers.flatMap((s) => [...(s.measured?.gaps ?? []), ...(s.measured?.losses ?? [])].map((g) => ({ ...g, server: s.name })));
  if (!list.length) return null;
  return (
    <details>
      <summary data-row>{plural(list.length, 'stretch', 'stretches')} with losses</summary>
      <ul className={css.list}>{list.map((g, i) => <li key={i}><Time at={g.from} /> – <Time at={g.to} short /> {g.server && <Name>{g.server}</Name>} {clean(g.text)}</li>)}</ul>
    </details>
  );
}

/** Pairs tells of requests of which one end is missing. */
function Pairs({ pairs: p }: { pairs: Answer<'completeness'>['pairs'] }) {
  const { here } = useLinks();
  const missing = p.noAnswer + p.noStart + p.overdue;
  if (!missing && !p.open && !p.stopped) return <p><b>No request lacks an end.</b> <span className="soft">Every one that began in this range has its answer.</span></p>;
  return (
    <div>
      <p>{missing ? <b>{plural(missing, 'request lacks an end', 'requests lack an end')}.</b> : <b>No request lacks an end it must have had.</b>} <span className="soft">{plural(p.open, 'watch or stream', 'watches and streams')} may still be under way, {count(p.stopped)} ended with their apiserver.</span></p>
      {p.examples && p.examples.length > 0 && (
        <ul className={css.list}>{p.examples.map((x) => <li key={x.auditID}><a data-row href={here({ why: x.auditID, request: null })}><Request verb={x.verb} uri={x.requestURI} /></a> <span className="soft">{clean(x.missing)}</span></li>)}</ul>
      )}
    </div>
  );
}

function Problems({ list }: { list: Schemas['CompletenessProblem'][] }) {
  if (!list.length) return <p className="soft">Nothing speaks against completeness.</p>;
  return (
    <ul className={css.problems}>
      {list.map((p, i) => (
        <li key={i}>
          <Tag tone={p.severity === 'fail' || p.severity === 'high' ? 'bad' : 'warn'}>{clean(p.severity)}</Tag> {p.apiserver && <Name>{p.apiserver}</Name>} {clean(p.text)}
          {p.todo && <details><summary data-row>What to do</summary><Text label="What to do">{p.todo}</Text></details>}
        </li>
      ))}
    </ul>
  );
}
