import type { Answer, Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Grid, Question } from '../../kit/Card';
import { Chart } from '../../kit/Chart';
import { DataTable, type Column } from '../../kit/DataTable';
import { Figures } from '../../kit/Figures';
import { Name, Subject, Who } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { Severity } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { count, percent, plural, SEVERITIES } from '../../kit/words';
import { useFindings, useGaps, useOverview } from './queries';
import css from './today.module.css';

/** Findings that are shown at once; the others are one click away. */
const MOST = 8;

/** Today answers: what needs me? */
export default function Today() {
  return (
    <Page title="Today" lead={<Gaps />}>
      <Summary />
      <Grid columns="minmax(0, 3fr) minmax(0, 2fr)">
        <Findings />
        <Refused />
      </Grid>
      <Volume />
    </Page>
  );
}

/** Gaps is one line on what may be missing: whoever reads the rest should know. */
function Gaps() {
  const { to } = useLinks();
  const { data } = useGaps();
  if (!data) return '\u00a0'; // the line is there before its words
  const missing = data.apiservers.reduce((n, s) => n + (s.measured?.missing ?? 0), 0);
  const worst = data.problems.filter((p) => p.severity !== 'info').length;
  const measured = data.apiservers.some((s) => s.measured);
  const said = missing ? `${plural(missing, 'event')} of this time did not arrive.` : worst ? `${plural(worst, 'doubt')} about completeness.` : measured ? 'Everything the apiservers sent has arrived.' : 'Whether everything arrived is not measured here.';
  return <>{said} <a href={to('/trust')}>{missing || worst ? 'What is missing' : 'How far to trust this'}</a></>;
}

function Summary() {
  const { to } = useLinks();
  const overview = useOverview();
  const findings = useFindings();
  const found = sum(findings.data?.rules);
  const worst = worstOf(findings.data?.findings ?? []);
  return (
    <Question asks={overview} lines={2}>
      {({ totals: t }) => (
        <Figures list={[
          { label: 'Findings', value: findings.data ? count(found) : '–', note: worst && `worst: ${worst}`, href: to('/findings'), tone: worst === 'critical' || worst === 'high' ? 'bad' : undefined },
          { label: 'Refused requests', value: count(t.forbid), note: `${percent(t.forbid, t.requests)} of ${count(t.requests)}`, href: to('/explore', { decision: 'forbid' }) },
          { label: 'Requests', value: count(t.requests), note: plural(t.events, 'audit event'), href: to('/explore') },
          { label: 'Drift', value: count(t.drift), note: t.drift ? 'the replay disagrees' : 'replay and apiserver agree', href: to('/explore', { outcome: 'drift' }), tone: t.drift ? 'bad' : t.match ? 'good' : undefined },
        ]} />
      )}
    </Question>
  );
}

type Finding = Schemas['DetectFinding'];

const FINDINGS: Column<Finding>[] = [
  { id: 'severity', head: 'Severity', width: '76px', cell: (f) => <Severity of={f.severity} /> },
  { id: 'finding', head: 'Finding', width: 'minmax(0, 1fr)', leads: true, cell: (f) => <span className={css.title}>{f.title || <Name>{f.rule}</Name>}</span> },
  { id: 'subject', head: 'Subject', width: 'minmax(0, .8fr)', cell: (f) => <Who subject={f.subject} most={60} /> },
  { id: 'last', head: 'Last', width: 'fit-content(150px)', cell: (f) => <span className="soft"><When at={f.last} /></span> },
  { id: 'count', head: 'Requests', width: '76px', number: true, cell: (f) => count(f.count) },
];

function Findings() {
  const { to } = useLinks();
  const asks = useFindings();
  return (
    <Card title="Findings" note="the most severe, then the newest" flush actions={asks.data && <a className="button" href={to('/findings')}>All {count(sum(asks.data.rules))}</a>}>
      <Question asks={asks} lines={MOST} empty={(a) => !a.findings.length && 'The detections found nothing in this range.'}>
        {(a) => <DataTable label="Findings" columns={FINDINGS} rows={[...a.findings].sort(bySeverity).slice(0, MOST)} rowKey={(f) => f.id} href={(f) => to('/findings', { finding: f.id })} />}
      </Question>
    </Card>
  );
}

type Busy = Schemas['SubjectCount'];

function Refused() {
  const { to } = useLinks();
  const asks = useOverview();
  const columns: Column<Busy>[] = [
    { id: 'subject', head: 'Subject', width: 'minmax(0, 1fr)', leads: true, cell: (s) => <Subject>{s.subject}</Subject> },
    { id: 'forbidden', head: 'Refused', width: '64px', number: true, cell: (s) => count(s.forbidden) },
    { id: 'share', head: 'Of its', width: '74px', number: true, cell: (s) => <span className="soft">{count(s.requests)}</span> },
  ];
  const refused = (a: Answer<'overview'>) => a.subjects.filter((s) => s.forbidden > 0 && s.subject).sort((x, y) => y.forbidden - x.forbidden).slice(0, MOST);
  return (
    <Card title="Who is refused" note="of the busiest subjects" flush>
      <Question asks={asks} lines={MOST} empty={(a) => !refused(a).length && 'None of the busiest subjects was refused anything in this range.'}>
        {(a) => <DataTable label="Who is refused" columns={columns} rows={refused(a)} rowKey={(s) => s.subject} href={(s) => to('/explore', { subject: s.subject, decision: 'forbid' })} />}
      </Question>
    </Card>
  );
}

function Volume() {
  const asks = useOverview();
  const { change } = useLinks();
  return (
    <Card title="Requests over time" note="drag to look at a part of it">
      <Question asks={asks} lines={6} empty={(a) => !a.volume.length && 'There are no requests in this range.'}>
        {(a) => (
          <Chart label="Requests over time, by decision" from={a.from} to={a.to} seconds={a.bucketSeconds} times={a.volume.map((b) => b.t)}
            series={[
              { label: 'allowed', tone: 'allow', values: a.volume.map((b) => b.allow) },
              { label: 'refused', tone: 'forbid', values: a.volume.map((b) => b.forbid) },
              { label: 'no decision recorded', tone: 'none', values: a.volume.map((b) => b.none) },
            ]}
            onPick={(from, to) => change({ from, to, range: null })} />
        )}
      </Question>
    </Card>
  );
}

function sum(counts: Record<string, number> | undefined): number {
  return Object.values(counts ?? {}).reduce((a, b) => a + b, 0);
}

const rank = (f: Finding) => (SEVERITIES as readonly string[]).indexOf(f.severity);

function bySeverity(a: Finding, b: Finding): number {
  return rank(a) - rank(b) || (a.last < b.last ? 1 : -1);
}

function worstOf(list: Finding[]): string | undefined {
  return [...list].sort(bySeverity)[0]?.severity;
}
