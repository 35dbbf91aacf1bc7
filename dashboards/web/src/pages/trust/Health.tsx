import type { Schemas } from '../../api/ask';
import { Card, Question } from '../../kit/Card';
import { Text } from '../../kit/Copy';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name } from '../../kit/Name';
import { connects, Steps } from '../../kit/Steps';
import { Tag } from '../../kit/Tag';
import { spanOf, Time } from '../../kit/Time';
import { usePreference } from '../../kit/preferences';
import { clean, count, percent, plural, table } from '../../kit/words';
import { useConnection, useDoctor, useJobs } from './queries';
import css from './trust.module.css';

/** Connection shows the steps of a cluster that connects and is not there yet. */
export function Connection() {
  const { data } = useConnection();
  if (!data || !connects(data.steps)) return null;
  return <Card title="Connection" note="from the apiserver’s audit webhook to verdicts"><Steps list={data.steps} /></Card>;
}

const TONES: Record<string, string> = table({ ok: 'good', warn: 'warn', fail: 'bad' });

/** Doctor shows what is wrong with the installation and this cluster first, and what is well on request. */
export function Doctor() {
  const asks = useDoctor();
  return (
    <Card title="Health" note="of the installation and of this cluster, as retrial doctor tells it">
      <Question asks={asks} lines={5}>
        {(a) => {
          const bad = a.checks.filter((c) => c.state !== 'ok').sort((x, y) => (x.state < y.state ? -1 : 1));
          const good = a.checks.filter((c) => c.state === 'ok');
          return (
            <>
              {bad.length ? <Checks list={bad} /> : <p><b>All is well.</b> <span className="soft">{plural(good.length, 'check')} passed.</span></p>}
              {good.length > 0 && <details><summary data-row>{plural(good.length, 'check')} passed</summary><Checks list={good} /></details>}
            </>
          );
        }}
      </Question>
    </Card>
  );
}

function Checks({ list }: { list: Schemas['DoctorCheck'][] }) {
  return (
    <ul className={css.problems}>
      {list.map((c, i) => (
        <li key={i}>
          <Tag tone={TONES[c.state] ?? 'warn'}>{clean(c.state)}</Tag> <Name>{c.id}</Name> {clean(c.text)}
          {c.todo && <Text label={`What to do about ${clean(c.id)}`}>{c.todo}</Text>}
        </li>
      ))}
    </ul>
  );
}

type Job = Schemas['RejudgeJob'];

/** Jobs shows what is judged again, or was. */
export function Jobs() {
  const asks = useJobs();
  const clock = usePreference('clock');
  const columns: Column<Job>[] = [
    { id: 'asked', head: 'Asked', width: '150px', cell: (j) => <Time at={j.asked} /> },
    { id: 'range', head: 'Requests of', width: 'minmax(0, 1fr)', cell: (j) => <>{spanOf(j.from, j.to, clock)} {j.where.map((w) => <Name key={w}>{w}</Name>)}</> },
    { id: 'done', head: 'Done', width: '90px', cell: (j) => (j.done ? 'all of it' : percent(j.share, 1)) },
    { id: 'visited', head: 'Judged again', width: '100px', number: true, cell: (j) => count(j.report.visited) },
    { id: 'changed', head: 'Changed', width: '80px', number: true, cell: (j) => count(j.report.changed) },
    { id: 'kind', head: 'Kind', width: '110px', cell: (j) => (j.dryRun ? <Tag>dry run</Tag> : <Tag tone="accent">applied</Tag>) },
  ];
  return (
    <Card title="Judged again" note="jobs of retrial rejudge" flush>
      <Question asks={asks} lines={2} empty={(a) => !a.jobs.length && 'Nobody has asked to judge stored requests of this cluster again. retrial rejudge does, after a change of configuration or an upgrade.'}>
        {(a) => <DataTable label="Judged again" columns={columns} rows={a.jobs} rowKey={(j) => j.id} />}
      </Question>
    </Card>
  );
}
