import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Grid, Question } from '../../kit/Card';
import { DataTable, type Column } from '../../kit/DataTable';
import { Figures } from '../../kit/Figures';
import { Name, Who } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { useScope } from '../../kit/scope';
import { Severity } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { count, plural, SEVERITIES } from '../../kit/words';
import { Dangers, Secrets } from './Held';
import { New } from './New';
import { newcomersOf, REFUSED, SECRETS, useFindings, useGaps, useIdle, useNews, useRefusals, useSecrets } from './queries';
import { Refused } from './Refused';
import css from './today.module.css';

/** Findings that are shown at once; the others are one click away. */
const MOST = 5;

/** Today answers: what needs me? */
export default function Today() {
  return (
    <Page title="Today" lead={<Gaps />}>
      <Summary />
      <Grid columns="minmax(0, 1fr) minmax(0, 1fr)">
        <div className={css.column}>
          <Findings />
          <Refused />
        </div>
        <div className={css.column}>
          <New />
          <Dangers />
          <Secrets />
        </div>
      </Grid>
    </Page>
  );
}

/** Gaps is one line on what may be missing: whoever reads the rest should know. */
function Gaps() {
  const { to } = useLinks();
  const { data, error } = useGaps();
  if (error)
    return (
      <>
        Whether everything arrived cannot be said. <a href={to('/trust')}>How far to trust this</a>
      </>
    );
  if (!data) return '\u00a0'; // the line is there before its words
  const missing = data.apiservers.reduce((n, s) => n + (s.measured?.missing ?? 0), 0);
  const worst = data.problems.filter((p) => p.severity !== 'info').length;
  const measured = data.apiservers.some((s) => s.measured);
  const said = missing
    ? `${plural(missing, 'event')} of this time did not arrive.`
    : worst
      ? `${plural(worst, 'doubt')} about completeness.`
      : measured
        ? 'Everything the apiservers sent has arrived.'
        : 'Whether everything arrived is not measured here.';
  return (
    <>
      {said} <a href={to('/trust')}>{missing || worst ? 'What is missing' : 'How far to trust this'}</a>
    </>
  );
}

/** Summary is a figure of each card: all of it in one look. */
function Summary() {
  const { to, here } = useLinks();
  const { range } = useScope();
  const findings = useFindings().data;
  const news = useNews().asks.data;
  const refused = useRefusals().data;
  const {
    asks: { data: dangers },
    idle,
  } = useIdle();
  const secrets = useSecrets().data;
  const worst = [...(findings?.findings ?? [])].sort(bySeverity)[0]?.severity;
  const holders = new Set(idle.flatMap((d) => d.holders.map((h) => JSON.stringify([h.kind, h.namespace, h.name])))).size;
  const admins = idle.find((d) => d.id === 'cluster-admin')?.holders.length ?? 0;
  const compared = news && news.baseline !== 'none';
  return (
    <Figures
      list={[
        {
          label: range.name === 'visit' ? 'New findings' : 'Findings',
          value: findings ? count(sum(findings.rules)) : '–',
          note: worst && `worst: ${worst}`,
          href: to('/findings'),
          tone: worst === 'critical' || worst === 'high' ? 'bad' : undefined,
        },
        {
          label: 'New accesses',
          value: compared ? count(news.uses.length) + (news.moreUses ? '+' : '') : '–',
          note: compared
            ? `by ${plural(newcomersOf(news.uses).length, 'subject')}, ${plural(news.grants.length, 'new grant')}`
            : news && 'nothing to compare with',
          href: here({ new: 'all' }),
        },
        {
          label: 'Refused requests',
          value: refused ? count(refused.requests) : '–',
          note:
            refused &&
            (refused.changes.length ? `some by ${plural(refused.changes.length, 'policy change')}` : 'none by a policy change known'),
          href: to('/explore', REFUSED),
        },
        {
          label: 'Dangerous and unused',
          value: dangers ? count(holders) + (dangers.more ? '+' : '') : '–',
          note: dangers && (admins ? `${count(admins)} with cluster-admin` : 'subjects'),
          href: to('/subjects', { show: 'idle' }),
          tone: admins ? 'warn' : undefined,
        },
        {
          label: 'Requests for Secrets',
          value: secrets ? count(secrets.requests) : '–',
          note: 'without Kubernetes’ own',
          href: to('/explore', SECRETS),
        },
      ]}
    />
  );
}

type Finding = Schemas['DetectFinding'];

const FINDINGS: Column<Finding>[] = [
  { id: 'severity', head: 'Severity', width: '76px', cell: (f) => <Severity of={f.severity} /> },
  {
    id: 'finding',
    head: 'Finding',
    width: 'minmax(0, 1.2fr)',
    leads: true,
    cell: (f) => <span className={css.title}><Name plain>{f.title || f.rule}</Name></span>,
  },
  { id: 'subject', head: 'Subject', width: 'minmax(0, .8fr)', cell: (f) => <Who subject={f.subject} most={60} /> },
  {
    id: 'last',
    head: 'Last',
    width: 'fit-content(150px)',
    cell: (f) => (
      <span className="soft">
        <When at={f.last} />
      </span>
    ),
  },
];

function Findings() {
  const { to } = useLinks();
  const asks = useFindings();
  return (
    <Card
      title="Findings"
      note="the most severe, then the newest"
      flush
      actions={
        asks.data && (
          <a className="button" href={to('/findings')}>
            All {count(sum(asks.data.rules))}
          </a>
        )
      }
    >
      <Question asks={asks} lines={MOST} empty={(a) => !a.findings.length && 'The detections found nothing in this range.'}>
        {(a) => (
          <DataTable
            label="Findings"
            columns={FINDINGS}
            rows={[...a.findings].sort(bySeverity).slice(0, MOST)}
            rowKey={(f) => f.id}
            href={(f) => to('/findings', { finding: f.id })}
          />
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
