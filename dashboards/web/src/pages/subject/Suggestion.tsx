import type { Answer } from '../../api/ask';
import type { Asked } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Empty, Question } from '../../kit/Card';
import { Copy, Text, fileName } from '../../kit/Copy';
import { DataTable, type Column } from '../../kit/DataTable';
import { keepDraft, markOf, type Sheet } from '../../kit/draft';
import { Name, Names } from '../../kit/Name';
import { command } from '../../kit/shell';
import { useScope } from '../../kit/scope';
import { Tag } from '../../kit/Tag';
import { lasting, Time } from '../../kit/Time';
import { clean, count, percent, plural } from '../../kit/words';
import css from './subject.module.css';

type One = Answer<'suggest'>['suggestions'][number];

/** A recording that is shorter says little of what happens once a week. */
const WEEK = 7 * 86_400;

const TABS: [id: 'apply' | 'remove' | 'rollback', label: string, told: string][] = [
  ['apply', 'Apply', 'Objects to apply first: roles narrowed in place, and copies of those that others hold, too. The removals are at the end, as comments.'],
  ['remove', 'Remove', 'Commands to run once the objects are applied: they remove what those replace.'],
  ['rollback', 'Roll back', 'What was there before: apply this to go back.'],
];

/** Suggestion shows the least it needs, the proof, and the change as the server wrote it. */
export function Suggestion({ asks }: { asks: Asked<Answer<'suggest'>> }) {
  return (
    <Card title="The least it needs" note="its roles narrowed to what it used, of everything stored, and the proof">
      {asks.error && asks.error.status !== 0 && asks.error.status < 500 ? <Empty>{clean(asks.error.message)}</Empty> : (
        <Question asks={asks} lines={8} empty={(a) => !a.suggestions.length && 'There is nothing to suggest: RBAC decided nothing about it.'}>
          {(a) => a.suggestions[0] && <Change one={a.suggestions[0]} texts={a.texts} read={a.read} />}
        </Question>
      )}
    </Card>
  );
}

function Change({ one: s, texts, read }: { one: One; texts: Answer<'suggest'>['texts']; read: string }) {
  const { params, here } = useLinks();
  const p = s.proof;
  const tab = TABS.find(([id]) => id === params.get('text')) ?? TABS[0];
  const length = (Date.parse(s.window.to) - Date.parse(s.window.from)) / 1000;
  const { cluster } = useScope();
  const same = command(
    'retrial', 'suggest', '--cluster', cluster, '--subject', s.subject, '-o', 'yaml',
    ...(s.system ? ['--include-system'] : []), ...(s.seen ? [] : ['--include-unseen']),
    ...(length < WEEK || (s.seen && !s.maturity.learned) ? ['--force'] : []),
  );
  return (
    <div className={css.suggestion}>
      {length < WEEK && <p className={css.warn}><b>It rests on {lasting(Math.max(1, length))}.</b> What the subject does once a week or once a month is not in it and would be refused.</p>}
      {s.seen && !s.maturity.learned && <p className={css.warn}><b>The subject is still learning.</b> What it needs is not known well: {s.maturity.why}.</p>}
      {!s.seen && <p className={css.warn}><b>No request of it is stored.</b> The recording does not show whether it is needed at all.</p>}
      {s.system && <p className={css.warn}><b>This is a subject of Kubernetes itself.</b> Its roles come back when the apiserver starts; changing them can break the cluster.</p>}
      {!p.holds && <p className={css.warn} role="alert"><b>The proof does not hold.</b> Do not apply this as it is.</p>}
      <dl className={css.facts}>
        <dt>Excess</dt>
        <dd>{s.excess.before ? <><b>{count(s.excess.before)}</b> now, <b>{count(s.excess.after)}</b> afterwards: {percent(s.excess.before - s.excess.after, s.excess.before)} of what its own bindings grant and it never used, weighed by danger, is removed.</> : 'Its own bindings grant nothing that it never used.'}{s.excess.kept > 0 && ` ${count(s.excess.kept)} more is granted by its groups and stays.`}</dd>
        <dt>Change</dt>
        <dd>{s.size.apply + s.size.remove ? `${plural(s.size.apply, 'object')} to apply, ${count(s.size.remove)} to remove, or to take it out of.` : 'None: none of its own bindings can be removed.'}</dd>
        <dt>Proof</dt>
        <dd>
          <Tag tone={p.holds ? 'good' : 'bad'}>{p.holds ? 'holds' : 'fails'}</Tag>{' '}
          {plural(p.requests, 'allowed request')} asked again, {count(p.refused)} of them refused; {plural(p.refusals, 'refusal')} asked again, {count(p.newlyAllowed)} of them newly allowed.
          <Aside of={p} />
          {(p.failures?.length ?? 0) > 0 && <ul className={css.list}>{p.failures?.map((f, i) => <li key={i}><Name plain most={400}>{f}</Name></li>)}</ul>}
        </dd>
        <dt>Recorded</dt>
        <dd><Time at={s.window.from} /> – <Time at={s.window.to} />: {plural(s.window.requests, 'request')}, {percent(s.window.judged, s.window.requests)} of them judged; read <Time at={read} />.</dd>
        {s.window.gaps?.length > 0 && (
          <><dt>Not recorded</dt><dd><ul className={css.list}>{s.window.gaps.map((g, i) => <li key={i}><Name plain most={500}>{g}</Name></li>)}</ul></dd></>
        )}
        {s.gaps.length > 0 && <><dt>Not known</dt><dd><ul className={css.list}>{s.gaps.map((g, i) => <li key={i}><Name plain most={500}>{g}</Name></li>)}</ul></dd></>}
      </dl>
      <Added list={s.added} />
      <Unused list={s.unused} />
      <Kept list={s.keeps} />
      {texts && s.size.apply + s.size.remove > 0 && tab && (
        <>
          <div role="group" aria-label="The change as text" className={css.toggle}>
            {TABS.map(([id, label]) => <a key={id} className="button" href={here({ text: id === 'apply' ? null : id })} aria-current={id === tab[0] || undefined}>{label}</a>)}
            <Copy text={same} what="as command" />
            <Try one={s} apply={texts.apply} />
          </div>
          <p className="soft">{tab[2]}</p>
          <Text label={tab[1]} file={fileName('retrial', s.subject, tab[0]) + (tab[0] === 'remove' ? '.sh' : '.yaml')}>{texts[tab[0]] || '# nothing to remove\n'}</Text>
        </>
      )}
    </div>
  );
}

/** Try leads to what the change would do, of which the draft is kept in the tab. */
function Try({ one: s, apply }: { one: One; apply: string }) {
  const { to } = useLinks();
  const replaced = s.remove.filter((r) => r.action === 'replace' && r.object);
  const draft: Sheet[] = [
    { name: fileName('retrial', s.subject, 'apply') + '.yaml', text: s.size.apply ? apply : '' },
    { name: fileName('retrial', s.subject, 'bindings') + '.yaml', text: replaced.map((r) => JSON.stringify(r.object, null, 2)).join('\n---\n') },
  ];
  const deletes = s.remove.filter((r) => r.action !== 'replace').map((r) => [r.kind, r.namespace, r.name].filter(Boolean).join('/'));
  return <a className="button" href={to('/whatif', { draft: markOf(draft), delete: deletes.join('\n'), range: null, from: null, to: null })} onClick={() => keepDraft(draft)}>Try it in What if</a>;
}

/** Aside tells what else the proof found, as far as there is any. */
function Aside({ of: p }: { of: One['proof'] }) {
  const said = [
    [p.allowedBefore, 'of the refusals are allowed now, as they were at another time'],
    [p.allowedByKept, 'are allowed by its groups in any case'],
    [p.allowedToday, 'are allowed by its own bindings by now'],
    [p.implied, 'are implied by what it needs'],
    [p.takenAway, 'allowed requests are not asked again: their grant has been taken away since'],
    [p.leftOut, 'requests are left out: they need a wildcard'],
  ] as const;
  const list = said.filter(([n]) => n > 0);
  return list.length ? <ul className={css.list}>{list.map(([n, text]) => <li key={text}>{count(n)} {text}</li>)}</ul> : null;
}

/** Added lists what its narrowed roles keep although it never used it, by role and reason. */
function Added({ list }: { list: One['added'] }) {
  if (!list?.length) return null;
  const groups = new Map<string, One['added']>();
  for (const a of list) {
    const key = JSON.stringify([a.role, a.reason]);
    groups.set(key, [...(groups.get(key) ?? []), a]);
  }
  const columns: Column<One['added']>[] = [
    { id: 'what', head: 'Kept', width: 'minmax(0, 1.6fr)', leads: true, wrap: true, cell: (of) => <Names list={of.map((a) => `${a.verb} ${a.resource}`)} most={8} /> },
    { id: 'role', head: 'Of the role', width: 'minmax(0, 1fr)', wrap: true, cell: (of) => <Name most={160}>{of[0]?.role}</Name> },
    { id: 'why', head: 'Because', width: 'minmax(0, 1.4fr)', wrap: true, labelled: true, cell: (of) => of[0]?.reason },
  ];
  return (
    <details>
      <summary data-row>What it keeps although it never used it: {plural(list.length, 'verb')}, each with a reason</summary>
      <DataTable label="Kept although never used" columns={columns} rows={[...groups.values()]} rowKey={(of) => JSON.stringify([of[0]?.role, of[0]?.reason])} />
    </details>
  );
}

type Rule = One['unused'][number];

/** Unused lists what it never used of its own bindings, the most dangerous first. */
function Unused({ list }: { list: Rule[] }) {
  const { to } = useLinks();
  if (!list?.length) return null;
  const columns: Column<Rule>[] = [
    { id: 'weight', head: 'Weight', width: '64px', number: true, cell: (u) => count(u.excess) },
    {
      id: 'what', head: 'Never used', width: 'minmax(0, 1.6fr)', leads: true, wrap: true,
      cell: (u) => (u.tooLarge && !u.unused?.length ? 'Too large to weigh' : <Names list={u.unused} most={8} beyond={u.more ?? 0} />),
    },
    { id: 'binding', head: 'By the binding', width: 'minmax(0, 1.2fr)', wrap: true, cell: (u) => <Name most={160}>{u.binding}</Name> },
    { id: 'role', head: 'Role', width: 'minmax(0, 1fr)', wrap: true, cell: (u) => <><Name most={160}>{u.role}</Name> <span className="soft">rule {u.rule}</span></> },
    {
      id: 'whole', head: 'Of the rule', width: '104px', labelled: true,
      cell: (u) => <span className="soft">{u.tooLarge ? 'not known' : u.whole ? 'nothing used' : 'a part used'}</span>,
    },
  ];
  const asks = (u: Rule) => {
    const [verb = '', what = ''] = /^(\S+) (.*)$/s.exec(u.unused?.[0] ?? '')?.slice(1) ?? [];
    const [kind, namespace] = u.binding.split('/');
    if (!what) return undefined;
    return to('/access', what.startsWith('/') ? { verb, path: what } : { verb, resource: what, namespace: kind === 'RoleBinding' ? namespace : null });
  };
  return (
    <details>
      <summary data-row>What it never used of its own bindings: {plural(list.length, 'rule')}, the most dangerous first</summary>
      <DataTable label="Never used" columns={columns} rows={list} rowKey={(u) => JSON.stringify([u.binding, u.role, u.rule])} href={asks} />
    </details>
  );
}

type Keep = One['keeps'][number];

/** Kept lists what its groups grant and the change leaves; first what makes the change pointless. */
function Kept({ list }: { list: Keep[] }) {
  const { to } = useLinks();
  if (!list.length) return null;
  const sorted = [...list].sort((a, b) => (b.undoes?.length ?? 0) - (a.undoes?.length ?? 0) || b.excess - a.excess);
  const undone = list.filter((k) => k.undoes?.length).length;
  const columns: Column<Keep>[] = [
    { id: 'group', head: 'Group', width: 'minmax(0, 1fr)', leads: true, cell: (k) => <Name most={120}>{k.group}</Name> },
    { id: 'binding', head: 'By the binding', width: 'minmax(0, 1.2fr)', wrap: true, cell: (k) => <Name most={160}>{k.binding}</Name> },
    { id: 'role', head: 'Role', width: 'minmax(0, 1fr)', wrap: true, cell: (k) => <Name most={160}>{k.role}</Name> },
    { id: 'relied', head: 'Relied on', width: '76px', number: true, cell: (k) => count(k.relied) },
    { id: 'excess', head: 'Excess', width: '70px', number: true, cell: (k) => (k.tooLarge ? '–' : count(k.excess)) },
    {
      id: 'undoes', head: 'Still gives', width: 'minmax(0, 1.2fr)', wrap: true, labelled: true,
      cell: (k) => (k.undoes?.length ? <Names list={k.undoes} most={6} /> : <span className="soft">–</span>),
    },
  ];
  return (
    <details open={undone > 0}>
      <summary data-row>
        {plural(list.length, 'grant')} of its groups {list.length === 1 ? 'stays' : 'stay'}
        {undone > 0 && `; ${count(undone)} of them still ${undone === 1 ? 'gives' : 'give'} some of what this takes away`}
      </summary>
      <DataTable label="What stays" columns={columns} rows={sorted} rowKey={(k) => JSON.stringify([k.group, k.binding, k.role])}
        href={(k) => to('/access', { subject: `group:${k.group}` })} />
    </details>
  );
}
