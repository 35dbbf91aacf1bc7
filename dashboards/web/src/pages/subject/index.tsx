import type { Answer } from '../../api/ask';
import type { Asked } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Empty, Grid, Pending, Question } from '../../kit/Card';
import { Chart } from '../../kit/Chart';
import { DataTable, type Column } from '../../kit/DataTable';
import { Figures } from '../../kit/Figures';
import { Name, Names, Subject as Label } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { Severity, Tag } from '../../kit/Tag';
import { Time, When } from '../../kit/Time';
import { clean, count, percent, plural, table } from '../../kit/words';
import { Credentials } from './Credentials';
import { Matrix } from './Matrix';
import { useActivity, useDoings, useFindings, useRights, useSuggestion, useWays } from './queries';
import { Suggestion } from './Suggestion';
import css from './subject.module.css';

/** Subject answers: what could it, what did it, and what is the least it needs? */
export default function Subject({ name = '' }: { name?: string }) {
  const { to } = useLinks();
  const doings = useDoings(name);
  const rights = useRights(name);
  const suggestion = useSuggestion(name);
  const unknown = doings.error?.status === 404 && (rights.error?.status === 404 || rights.data?.stranger) ? doings.error : null;
  const lost = (rights.data?.scopes ?? []).flatMap((s) => s.missingRoles ?? []);
  return (
    <Page title={<span className={css.title}><Label most={400}>{name}</Label></span>} lead={<Lead name={name} rights={rights.data} />}
      actions={<><a className="button" href={to('/explore', { subject: name })}>Its requests</a><a className="button" href={to('/access', { subject: `user:${name}` })}>Its rights over time</a></>}>
      {unknown ? <Card title="Nothing is known of it"><Empty>{clean(unknown.message)}</Empty></Card> : (
        <>
          <Summary name={name} doings={doings} suggestion={suggestion} />
          <Activity name={name} />
          <Card title="What it could and did" note="by the policy at the end of the range">
            {(doings.isPending || rights.isPending) && <Pending lines={8} />}
            {rights.error && <p className={css.warn} role="alert">What it may do is not known: {clean(rights.error.message)}</p>}
            {doings.error && doings.error.status !== 404 && <p className={css.warn} role="alert">What it did is not known: {clean(doings.error.message)}</p>}
            {(rights.data?.missing?.length ?? 0) > 0 && <p className={css.warn}>Not everything is known that could add to this: <Names list={rights.data?.missing} most={5} />.</p>}
            {lost.length > 0 && <p className={css.warn}>Its bindings refer to roles that do not exist: <Names list={lost} most={5} />. Anyone who can create these roles decides what it gets.</p>}
            {!doings.isPending && !rights.isPending && <Matrix name={name} rights={rights.data} doings={doings.data} />}
          </Card>
          <Grid columns="minmax(0, 1fr) minmax(0, 1fr)">
            <Findings name={name} />
            <Credentials name={name} />
          </Grid>
          <Sources doings={doings} rights={rights.data} />
          <Suggestion asks={suggestion} />
        </>
      )}
    </Page>
  );
}

/** kind words what a user name stands for. */
function kind(name: string): string {
  if (name.startsWith('system:serviceaccount:')) return 'Service account';
  if (name.startsWith('system:node:')) return 'Node';
  if (name === 'system:anonymous') return 'Callers without credentials';
  return name.startsWith('system:') ? 'Component of Kubernetes' : 'User';
}

/** Lead says what it is, and the shortest way from it to cluster administrator. */
function Lead({ name, rights }: { name: string; rights: Answer<'can'> | undefined }) {
  const ways = useWays(name);
  const way = ways.data?.paths.find((p) => p.to.kind === 'Goal');
  return (
    <span className={css.lead}>
      <span>{kind(name)}</span>
      {rights?.superuser ? <Tag tone="critical">system:masters: may do everything</Tag> : way && (
        <Tag tone="critical" title={clean(way.text)}>{way.steps?.length ? `can become cluster-admin in ${plural(way.steps.length, 'step')}` : 'cluster-admin'}</Tag>
      )}
    </span>
  );
}

function Summary({ name, doings, suggestion }: { name: string; doings: Asked<Answer<'subject'>>; suggestion: Asked<Answer<'suggest'>> }) {
  const { to, here } = useLinks();
  const d = doings.data;
  const s = suggestion.data?.suggestions[0];
  const nothing = suggestion.isPending ? '–' : '0';
  return (
    <Figures list={[
      { label: 'Requests', value: d ? count(d.requests) : doings.isPending ? '–' : '0', note: d?.last ? <>last <Time at={d.last} /></> : 'none in this range', href: to('/explore', { subject: name }) },
      { label: 'Refused', value: d ? count(d.forbidden) : doings.isPending ? '–' : '0', note: d && `${percent(d.forbidden, d.requests)} of its requests`, href: to('/explore', { subject: name, decision: 'forbid' }) },
      { label: 'Drift', value: d ? count(d.drift) : doings.isPending ? '–' : '0', note: 'replay disagrees', href: to('/explore', { subject: name, outcome: 'drift' }), tone: d?.drift ? 'bad' : undefined },
      { label: 'Never used', value: s ? percent(s.excess.before, s.excess.held) : nothing, note: s && (s.excess.held ? 'of what its own bindings grant, weighed by danger' : 'no binding names it'), href: here({ show: 'unused', rows: null }) },
      { label: 'After the suggestion', value: s ? count(s.excess.after) : nothing, note: s && `excess, now ${count(s.excess.before)}`, tone: s && s.excess.before > 0 && s.excess.after === 0 ? 'good' : undefined },
    ]} />
  );
}

const TONES: Record<string, [label: string, tone: string]> = table({ allow: ['allowed', 'allow'], forbid: ['refused', 'forbid'], none: ['no decision recorded', 'none'] });

function Activity({ name }: { name: string }) {
  const asks = useActivity(name);
  const { change } = useLinks();
  return (
    <Card title="Activity" note="requests over time; drag to look at a part of it">
      <Question asks={asks} lines={4} empty={(a) => !a.steps.some((s) => s.counts.some(Boolean)) && 'It made no request in this range.'}>
        {(a) => {
          const { from, to } = a.countedFrom ? { from: a.countedFrom, to: a.countedTo } : { from: a.steps[0]?.t ?? '', to: a.steps.at(-1)?.t ?? '' };
          return (
            <Chart label="Requests over time, by decision" height={120} from={from} to={to} seconds={a.stepSeconds} times={a.steps.map((s) => s.t)}
              series={a.values.map((v, i) => ({ label: TONES[v]?.[0] ?? v, tone: TONES[v]?.[1] ?? 'none', values: a.steps.map((s) => s.counts[i] ?? 0) }))}
              onPick={(f, t) => change({ from: f, to: t, range: null })} />
          );
        }}
      </Question>
    </Card>
  );
}

type Finding = Answer<'findings'>['findings'][number];

const FINDINGS: Column<Finding>[] = [
  { id: 'severity', head: 'Severity', width: '76px', cell: (f) => <Severity of={f.severity} /> },
  { id: 'finding', head: 'Finding', width: 'minmax(0, 1fr)', leads: true, cell: (f) => <Name plain>{f.title || f.rule}</Name> },
  { id: 'last', head: 'Last', width: 'fit-content(150px)', cell: (f) => <span className="soft"><When at={f.last} /></span> },
  { id: 'count', head: 'Requests', width: '76px', number: true, cell: (f) => count(f.count) },
];

function Findings({ name }: { name: string }) {
  const { to } = useLinks();
  const asks = useFindings(name);
  return (
    <Card title="Findings" note="what detections found about it" flush>
      <Question asks={asks} lines={3} empty={(a) => !a.findings.length && 'The detections found nothing about it in this range.'}>
        {(a) => <DataTable label="Findings" columns={FINDINGS} rows={a.findings} rowKey={(f) => f.id} href={(f) => to('/findings', { finding: f.id })} />}
      </Question>
    </Card>
  );
}

/** Source is a binding that gives it something. */
interface Source {
  binding: string;
  role: string;
  by: string;
  own: boolean;
  scope: string;
  rules: number;
  requests: number;
}

const SOURCES: Column<Source>[] = [
  { id: 'by', head: 'Named as', width: 'minmax(130px, 1fr)', cell: (s) => (s.own ? 'itself' : <><span className="soft">group </span><Name most={100}>{s.by.replace(/^Group\//, '')}</Name></>) },
  { id: 'binding', head: 'Binding', width: 'minmax(160px, 1.5fr)', leads: true, cell: (s) => <Name most={160}>{s.binding}</Name> },
  { id: 'role', head: 'Role', width: 'minmax(140px, 1.2fr)', cell: (s) => <Name most={160}>{s.role}</Name> },
  { id: 'scope', head: 'Where', width: 'minmax(90px, .8fr)', cell: (s) => (s.scope ? <Name most={100}>{s.scope}</Name> : 'everywhere') },
  { id: 'rules', head: 'Rules', width: '56px', number: true, cell: (s) => count(s.rules) },
  { id: 'requests', head: 'Requests', width: '90px', number: true, cell: (s) => (s.requests ? count(s.requests) : <span className={css.never}>never used</span>) },
  { id: 'without', head: 'What if', width: '86px', cell: (s) => <Without binding={s.binding} /> },
];

/** Without leads to what would be refused were a binding deleted. */
function Without({ binding }: { binding: string }) {
  const { to } = useLinks();
  return binding ? <a href={to('/whatif', { delete: binding, range: null, from: null, to: null })} aria-label={`What if ${clean(binding)} were deleted`}>deleted</a> : null;
}

/** Sources shows its groups and the bindings that its rights come from. */
function Sources({ doings, rights }: { doings: Asked<Answer<'subject'>>; rights: Answer<'can'> | undefined }) {
  const sets = doings.data?.groups ?? (rights?.groups ? [rights.groups] : []);
  const from = doings.data?.groupsFrom ?? rights?.groupsFrom;
  return (
    <Card title="Groups and bindings" note="where its rights come from">
      <div className={css.groups}>
        {sets.length > 0 && <p className="soft">{from === 'name' ? 'Groups that its name implies:' : sets.length > 1 ? `Its requests carried ${plural(sets.length, 'set')} of groups:` : 'Groups that its requests carried:'}</p>}
        <ul>{sets.slice(0, 6).map((set, i) => <li key={i}><Groups list={set} /></li>)}</ul>
        {sets.length > 6 && <p className="soft">and {count(sets.length - 6)} more sets</p>}
      </div>
      <Question asks={doings} lines={4} empty={(a) => !a.rules?.length && 'No binding gives it anything, as far as is known.'}>
        {(a) => <DataTable label="Bindings" columns={SOURCES} rows={sourcesOf(a.rules ?? [])} rowKey={(s) => JSON.stringify([s.binding, s.by])} />}
      </Question>
      {doings.data?.moreRules && <p className="soft small">There are more rules than are told apart here: its rights over time have all.</p>}
    </Card>
  );
}

/** Groups lead to what they alone can do. */
function Groups({ list }: { list: string[] }) {
  const { to } = useLinks();
  const [few, rest] = [list.slice(0, 12), list.slice(12)];
  return (
    <>
      {few.map((g, i) => <span key={g}>{i > 0 && ', '}<a href={to('/access', { subject: `group:${g}` })}><Name most={120}>{g}</Name></a></span>)}
      {rest.length > 0 && <>, <Names list={rest} most={0} /></>}
    </>
  );
}

function sourcesOf(rules: NonNullable<Answer<'subject'>['rules']>): Source[] {
  const by = new Map<string, Source>();
  for (const r of rules) {
    const key = JSON.stringify([r.binding, r.subject]);
    const s = by.get(key) ?? { binding: r.binding, role: r.role, by: r.subject, own: r.own, scope: r.scope, rules: 0, requests: 0 };
    s.rules++;
    s.requests += r.requests;
    by.set(key, s);
  }
  return [...by.values()].sort((a, b) => Number(b.own) - Number(a.own) || Number(a.requests > 0) - Number(b.requests > 0) || a.binding.localeCompare(b.binding));
}
