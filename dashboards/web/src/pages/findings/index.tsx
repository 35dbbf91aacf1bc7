import type { Schemas } from '../../api/ask';
import { useConstant } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, useColumns, type Column } from '../../kit/DataTable';
import { Filters, PickFilter, TextFilter } from '../../kit/Filter';
import { Name, Names, Who } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { Severity } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { clean, count, plural, sentence, SEVERITIES } from '../../kit/words';
import { FILTERS, useCounts, useFindings, type Finding } from './queries';
import css from './findings.module.css';

const COLUMNS: Column<Finding>[] = [
  { id: 'severity', head: 'Severity', width: '80px', cell: (f) => <Severity of={f.severity} /> },
  { id: 'finding', head: 'Finding', width: 'minmax(0, 2.2fr)', leads: true, wrap: true, cell: (f) => <><span className={css.title}><Name plain>{f.title || f.rule}</Name></span><span className={css.text}><Name plain most={200}>{f.text}</Name></span></> },
  { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', cell: (f) => <Who subject={f.subject} most={90} /> },
  { id: 'count', head: 'Requests', width: '72px', number: true, cell: (f) => count(f.count) },
  { id: 'first', head: 'First', width: 'fit-content(150px)', labelled: true, cell: (f) => <span className="soft"><When at={f.first} /></span> },
  { id: 'last', head: 'Last', width: 'fit-content(150px)', labelled: true, cell: (f) => <span className="soft"><When at={f.last} /></span> },
  { id: 'attack', head: 'MITRE ATT&CK', width: 'minmax(90px, .6fr)', extra: true, labelled: true, cell: (f) => <Names list={f.attack} most={6} /> },
  { id: 'rule', head: 'Rule', width: 'minmax(100px, .8fr)', extra: true, labelled: true, cell: (f) => <Name>{f.rule}</Name> },
  { id: 'id', head: 'ID', width: 'minmax(100px, .8fr)', extra: true, labelled: true, cell: (f) => <Name>{f.id}</Name> },
];

/** Findings answers: what did the detections find? */
export default function Findings() {
  const { params, here } = useLinks();
  const asks = useFindings();
  const rules = useConstant('rules').data?.rules ?? [];
  const { shown, pick } = useColumns(COLUMNS);
  const filtered = FILTERS.some((f) => params.get(f));
  const rows = (asks.data?.pages ?? []).flatMap((p) => p.findings);
  const total = Object.values(asks.data?.pages[0]?.rules ?? {}).reduce((a, b) => a + b, 0);
  return (
    <Page title="Findings" lead="What the detections found in the requests of this range. Open one to see the requests behind it.">
      <Filters names={FILTERS}>
        <PickFilter name="severity" label="Severity" values={SEVERITIES.slice(0, -1).map((s, i) => [s, i ? `${s} and above` : s])} />
        <PickFilter name="rule" label="Rule" values={rules.map((r) => [r.id, clean(r.title || r.id)])} />
        <TextFilter name="subject" label="Subject" width="260px" />
      </Filters>
      <Card title="Findings" note={asks.data && `${plural(total, 'finding')}, the newest first`} actions={pick} flush>
        <Question asks={asks} lines={10} empty={() => !rows.length && (filtered ? 'No finding in this range matches these filters.' : `Nothing was found in this range. ${plural(rules.length, 'rule')} looked at its requests: each is named below.`)}>
          {() => (
            <DataTable label="Findings" columns={shown} rows={rows} rowKey={(f) => f.id} href={(f) => here({ finding: f.id, since: f.first })} current={params.get('finding')}
              more={asks.hasNextPage ? () => void asks.fetchNextPage() : undefined} pending={asks.isFetchingNextPage} />
          )}
        </Question>
      </Card>
      <Rules />
    </Page>
  );
}

type Rule = Schemas['DetectionRule'];

/** Rules lists what the detections look for: those that found something first, then the most severe. */
function Rules() {
  const { params, here } = useLinks();
  const asks = useConstant('rules');
  const found = useCounts().data?.rules ?? {};
  const order = (r: Rule) => (SEVERITIES as readonly string[]).indexOf(r.severity);
  const sorted = [...(asks.data?.rules ?? [])].sort((a, b) => Number((found[b.id] ?? 0) > 0) - Number((found[a.id] ?? 0) > 0) || order(a) - order(b) || (a.id < b.id ? -1 : 1));
  const columns: Column<Rule>[] = [
    { id: 'severity', head: 'Severity', width: '80px', cell: (r) => <Severity of={r.severity} /> },
    { id: 'rule', head: 'Rule', width: 'minmax(0, 3fr)', leads: true, wrap: true, cell: (r) => <><span className={css.title}><Name plain>{r.title}</Name></span> <span className="soft"><Name most={80}>{r.id}</Name></span><span className={css.text}><Name plain most={1000}>{sentence(r.description.trim())}</Name></span></> },
    { id: 'kind', head: 'Kind', width: '84px', cell: (r) => <span className="soft">{r.kind}</span> },
    { id: 'attack', head: 'MITRE ATT&CK', width: 'minmax(80px, .7fr)', labelled: true, cell: (r) => <Names list={r.attack} most={6} /> },
    { id: 'found', head: 'Findings', width: '68px', number: true, cell: (r) => (found[r.id] ? count(found[r.id]) : <span className="soft">0</span>) },
  ];
  return (
    <Card title="What the detections look for" note="rules over events and verdicts, with their findings of this range" flush>
      <Question asks={asks} lines={10} empty={() => !sorted.length && 'The server runs no rules.'}>
        {() => <DataTable label="Rules" columns={columns} rows={sorted} rowKey={(r) => r.id} href={(r) => here({ rule: params.get('rule') === r.id ? null : r.id, finding: null, since: null })} current={params.get('rule')} />}
      </Question>
    </Card>
  );
}
