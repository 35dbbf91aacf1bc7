import type { Answer, Schemas } from '../../api/ask';
import { pathOf, useLinks, type Changes } from '../../kit/address';
import { Empty, Question } from '../../kit/Card';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name, Names, Who } from '../../kit/Name';
import { whatOf } from '../../kit/request';
import { On, Person } from '../../kit/Rule';
import { Tag } from '../../kit/Tag';
import { count, plural, table } from '../../kit/words';
import { Said, Through } from './Holders';
import { useAsking, useDifference, useRights } from './queries';
import css from './access.module.css';

/** Rule is a row: a rule and where it applies. */
interface Rule {
  key: string;
  where: string;
  rule: Schemas['HeldRule'];
}

const COLUMNS: Column<Rule>[] = [
  { id: 'where', head: 'Where', width: 'minmax(96px, .8fr)', cell: (r) => (r.where ? <Name most={100}>{r.where}</Name> : 'everywhere') },
  { id: 'may', head: 'May', width: 'minmax(120px, 1fr)', leads: true, wrap: true, cell: (r) => <Names list={r.rule.verbs} most={10} /> },
  { id: 'on', head: 'On', width: 'minmax(160px, 1.6fr)', wrap: true, cell: (r) => <On rule={r.rule} /> },
  { id: 'through', head: 'Through', width: 'minmax(220px, 2fr)', wrap: true, cell: (r) => <Through grants={r.rule.by} asks={first(r)} /> },
];

/** first asks who else can, for the first thing that a rule allows. */
function first({ rule: r, where }: Rule): Changes {
  const verb = r.verbs[0];
  if (r.nonResourceURLs?.length) return { verb, path: r.nonResourceURLs[0] };
  const [resource = '', subresource] = (r.resources?.[0] ?? '').split('/', 2);
  return { verb, resource: whatOf({ resource, group: r.apiGroups?.[0] ?? '', subresource }), namespace: where, name: r.resourceNames?.[0] };
}

/** FROM is where the groups of a subject are known from. */
const FROM: Record<string, string> = table({
  requests: 'those of its latest requests',
  name: 'which its name implies',
  unknown: 'which its name implies; those of its requests are not known',
  asked: 'as asked',
});

/** Rights answers what somebody can do. */
export function Rights() {
  const { to } = useLinks();
  const { at } = useAsking();
  const asks = useRights(at);
  return (
    <Question asks={asks} lines={10}>
      {(a) => {
        const rules = (a.scopes ?? []).flatMap((s) => s.rules.map((rule, i): Rule => ({ key: `${s.namespace} ${i}`, where: s.namespace, rule })));
        const lost = (a.scopes ?? []).flatMap((s) => s.missingRoles ?? []);
        return (
          <>
            <Said of={a} />
            {a.superuser && <p className={css.warn}><b>It may do everything.</b> Members of system:masters are never asked for a grant.</p>}
            {lost.length > 0 && <p className={css.warn}>Its bindings refer to roles that do not exist: <Names list={lost} most={5} />. Anyone who can create these roles decides what it gets.</p>}
            <div className={css.above}>
              <p role="status"><b>{plural(rules.length, 'rule')}</b> {rules.length === 1 ? 'applies' : 'apply'}{a.groups?.length ? <> to {a.subject && 'it and '}its groups, {FROM[a.groupsFrom] ?? 'as asked'}: <Names list={a.groups} most={6} /></> : null}.</p>
              {a.subject && <div className={css.acts}><a className="button" href={to(pathOf('subjects', a.subject))}>What it used of it</a></div>}
            </div>
            {rules.length > 0 ? <DataTable label="What it can do" columns={COLUMNS} rows={rules} rowKey={(r) => r.key} /> : !a.superuser && <Empty>No rule applies to it.</Empty>}
          </>
        );
      }}
    </Question>
  );
}

/** Change is a row: what somebody gained or lost. */
interface Change {
  key: string;
  who: Schemas['ChangedSubject'];
  where: string;
  gained: boolean;
  rule: Answer<'changes'>['subjects'][number]['scopes'][number]['gained'][number];
}

/** Difference shows which accesses became possible and impossible between two moments, and by which writes. */
export function Difference({ one }: { one?: boolean }) {
  const { at, since } = useAsking();
  const { here } = useLinks();
  const asks = useDifference(since !== '', since, at);
  const columns: Column<Change>[] = [
    { id: 'change', head: 'Change', width: '78px', cell: (c) => <Tag tone={c.gained ? 'warn' : 'good'}>{c.gained ? '+ gained' : '− lost'}</Tag> },
    ...(one ? [] : [{ id: 'who', head: 'Who', width: 'minmax(130px, 1fr)', leads: true, cell: (c: Change) => <Person of={c.who} /> }]),
    { id: 'where', head: 'Where', width: 'minmax(96px, .7fr)', cell: (c) => (c.where ? <Name most={100}>{c.where}</Name> : 'everywhere') },
    { id: 'may', head: 'May', width: 'minmax(110px, .9fr)', wrap: true, leads: one ?? false, cell: (c) => <Names list={c.rule.verbs} most={8} /> },
    { id: 'on', head: 'On', width: 'minmax(150px, 1.5fr)', wrap: true, cell: (c) => <On rule={c.rule} /> },
    { id: 'because', head: 'By', width: 'minmax(170px, 1.4fr)', wrap: true, cell: (c) => <Names list={c.rule.because} most={3} /> },
  ];
  return (
    <Question asks={asks} lines={8} empty={(a) => !a.subjects.length && 'Nobody’s access changed between these two moments.'}>
      {(a) => {
        const rows = a.subjects.flatMap((who, i) => who.scopes.flatMap((s) => [...s.gained.map((rule) => ({ rule, gained: true })), ...s.lost.map((rule) => ({ rule, gained: false }))]
          .map((c, j): Change => ({ ...c, key: `${i} ${s.namespace} ${j}`, who, where: s.namespace }))));
        return (
          <>
            {!a.known && <p className={css.warn}>Not all bindings of both times are known: there may be more.</p>}
            <p role="status" className={css.above}>
              <span><b>{count(rows.filter((r) => r.gained).length)}</b> gained, <b>{count(rows.filter((r) => !r.gained).length)}</b> lost{!one && <>, by {plural(a.subjects.length + (a.more ?? 0), 'subject')}</>}, through {plural(a.writes.length + (a.moreWrites ?? 0), 'write')}.</span>
            </p>
            <DataTable label="What changed" columns={columns} rows={rows} rowKey={(r) => r.key} />
            <details className={css.writes}>
              <summary>The {plural(a.writes.length, 'write')} that did it</summary>
              <ul>{a.writes.slice(0, 100).map((w, i) => (
                <li key={i}><Name most={160}>{w.object}</Name> <span className="soft">{w.what}{w.user && <> by <Who subject={w.user} /></>}</span> {w.auditID && <a href={here({ why: w.auditID, request: null })}>the request</a>}</li>
              ))}</ul>
            </details>
          </>
        );
      }}
    </Question>
  );
}
