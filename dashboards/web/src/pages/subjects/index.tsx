import { useMemo } from 'react';
import type { Answer } from '../../api/ask';
import { pathOf, useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { DataTable, useColumns, useSort, type Column } from '../../kit/DataTable';
import { Figures } from '../../kit/Figures';
import { Filters, FindFilter, PickFilter } from '../../kit/Filter';
import { Names, Subject as Label } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { Tag } from '../../kit/Tag';
import { When } from '../../kit/Time';
import { clean, count, percent, plural } from '../../kit/words';
import { KINDS, useSubjects, type Flag, type Subject } from './queries';
import css from './subjects.module.css';

/** FILTERS are parameters of the address. */
const FILTERS = ['q', 'kind', 'flag', 'show', 'system'];

/** danger orders subjects by the worst that they hold: the dangers are listed the worst first. */
const ORDER = [
  'cluster-admin',
  'escalate',
  'bind',
  'impersonate',
  'rbac-write',
  'node-proxy',
  'token-request',
  'secrets-read',
  'secrets-write',
  'csr-approve',
  'webhook-write',
  'policy-write',
  'pod-exec',
  'pod-create',
  'workload-write',
];
const worth = (f: Flag) => 2 ** (ORDER.length - (ORDER.includes(f.id) ? ORDER.indexOf(f.id) : ORDER.length));
const danger = (s: Subject) => s.flags.reduce((n, f) => n + worth(f), 0);
const share = (s: Subject) => (s.held ? (s.excess ?? 0) / s.held : 0);

const COLUMNS: Column<Subject>[] = [
  {
    id: 'subject',
    head: 'Subject',
    width: 'minmax(150px, 1.5fr)',
    leads: true,
    cell: (s) => <Label most={120}>{s.name}</Label>,
    sorts: (s) => s.name.toLowerCase(),
  },
  { id: 'kind', head: 'Kind', width: '112px', cell: (s) => <span className="soft">{KINDS[s.kind]}</span>, sorts: (s) => KINDS[s.kind] },
  {
    id: 'danger',
    head: 'Dangerous rights',
    width: 'minmax(150px, 1.6fr)',
    cell: (s) => <Flags of={s} />,
    sorts: (s) => danger(s) * 1e9 + (s.excess ?? 0),
  },
  {
    id: 'unused',
    head: 'Never used',
    width: '150px',
    labelled: true,
    cell: (s) => <Share of={s} />,
    sorts: (s) => share(s) + (s.excess ?? 0) / 1e9,
  },
  {
    id: 'excess',
    head: 'Excess',
    width: '76px',
    number: true,
    cell: (s) => (s.kind === 'group' || s.excess === undefined ? '–' : count(s.excess)),
    sorts: (s) => s.excess ?? -1,
  },
  {
    id: 'requests',
    head: 'Requests',
    width: '84px',
    number: true,
    cell: (s) => <span className={s.requests ? undefined : 'soft'}>{s.kind === 'group' ? '–' : count(s.requests)}</span>,
    sorts: (s) => s.requests,
  },
  {
    id: 'refused',
    head: 'Refused',
    width: '76px',
    number: true,
    cell: (s) => <span className={s.refused ? css.refused : 'soft'}>{s.kind === 'group' ? '–' : count(s.refused)}</span>,
    sorts: (s) => s.refused,
  },
  {
    id: 'refusals',
    head: 'Refused share',
    width: '104px',
    number: true,
    extra: true,
    cell: (s) => percent(s.refused, s.requests),
    sorts: (s) => s.refused / Math.max(1, s.requests),
  },
  {
    id: 'last',
    head: 'Last request',
    width: 'fit-content(150px)',
    cell: (s) => <span className="soft">{s.last ? <When at={s.last} /> : s.kind === 'group' ? '' : 'never'}</span>,
    sorts: (s) => (s.last ? Date.parse(s.last) : 0),
  },
  {
    id: 'after',
    head: 'Excess after',
    width: '92px',
    number: true,
    extra: true,
    cell: (s) => (s.suggested ? count(s.suggested.excess.after) : '–'),
    sorts: (s) => s.suggested?.excess.after ?? -1,
  },
  {
    id: 'kept',
    head: 'By groups',
    width: '80px',
    number: true,
    extra: true,
    cell: (s) => (s.suggested ? count(s.suggested.excess.kept) : '–'),
    sorts: (s) => s.suggested?.excess.kept ?? -1,
  },
  {
    id: 'judged',
    head: 'Judged',
    width: '76px',
    number: true,
    extra: true,
    cell: (s) => (s.suggested ? percent(s.suggested.window.judged, s.suggested.window.requests) : '–'),
  },
  { id: 'change', head: 'Suggested change', width: 'minmax(120px, 1fr)', labelled: true, extra: true, cell: (s) => <Change of={s} /> },
  {
    id: 'proof',
    head: 'Proof',
    width: '70px',
    labelled: true,
    extra: true,
    cell: (s) =>
      s.suggested && <Tag tone={s.suggested.proof.holds ? 'good' : 'bad'}>{s.suggested.proof.holds ? 'holds' : 'fails'}</Tag>,
  },
  {
    id: 'bindings',
    head: 'Bindings of the never seen',
    width: 'minmax(150px, 1.4fr)',
    labelled: true,
    extra: true,
    cell: (s) => s.bindings && <Names list={s.bindings} most={4} />,
  },
];

/** Subjects answers: who holds too much, and who is odd? */
export default function Subjects() {
  const { params, here, to } = useLinks();
  const { rows, uses, excess, dangers } = useSubjects();
  const { shown, pick } = useColumns(COLUMNS);
  const get = (name: string) => params.get(name) ?? '';
  const system = get('system') !== '' || get('kind') === 'node' || get('kind') === 'system';
  const mine = useMemo(() => rows.filter((s) => system || !s.own), [rows, system]);
  const text = get('q').toLowerCase();
  const [kind, flag, show] = [get('kind'), get('flag'), get('show')];
  const chosen = useMemo(
    () =>
      mine.filter(
        (s) =>
          (!text || s.name.toLowerCase().includes(text)) &&
          (!kind || s.kind === kind) &&
          (!flag || s.flags.some((f) => f.id === flag)) &&
          fits(s, show, flag),
      ),
    [mine, text, kind, flag, show],
  );
  const { sorted, sort } = useSort(COLUMNS, chosen, 'danger');
  const all = { ...uses, isPending: uses.isPending && !rows.length } as typeof uses;
  const held = useMemo(() => new Set(mine.flatMap((s) => s.flags.map((f) => f.id))), [mine]);
  const flags = [...new Set([...ORDER, ...(dangers.data?.dangers ?? []).map((d) => d.id)])].filter((f) => f === flag || held.has(f));
  const numbers = useMemo(() => Object.fromEntries(Object.keys(SHOW).map((k) => [k, mine.filter((s) => fits(s, k, '')).length])), [mine]);
  const number = (show: string) => numbers[show] ?? 0;
  const waits = excess.isPending || dangers.isPending;
  return (
    <Page title="Subjects" lead="Who holds more than it uses, and who is odd? Everybody who made a request or is named by a binding.">
      <Question asks={all} lines={2}>
        {() => (
          <Figures
            list={[
              {
                label: 'Subjects',
                value: count(mine.length),
                note: system ? 'with Kubernetes’ own' : 'without Kubernetes’ own',
                href: here({ show: null, flag: null, kind: null, q: null }),
              },
              {
                label: 'Dangerous rights',
                value: dangers.data ? count(number('dangerous')) : '–',
                note: 'cluster-admin, secrets, exec …',
                href: here({ show: 'dangerous' }),
              },
              {
                label: 'Dangerous and unused',
                value: dangers.data ? count(number('idle')) : '–',
                note: 'a right it holds and never used',
                href: here({ show: 'idle' }),
                tone: dangers.data && number('idle') ? 'bad' : undefined,
              },
              {
                label: 'Never seen',
                value: excess.data ? count(number('unseen')) : '–',
                note: 'bound, and no request',
                href: here({ show: 'unseen' }),
              },
              {
                label: 'Refused',
                value: count(number('refused')),
                note: 'some request was',
                href: here({ show: 'refused', sort: 'refused' }),
              },
            ]}
          />
        )}
      </Question>
      <Filters names={FILTERS}>
        <FindFilter name="q" label="Name" hint="contains" width="170px" />
        <PickFilter name="kind" label="Kind" values={Object.entries(KINDS)} />
        <PickFilter name="flag" label="Right" values={flags.map((f) => [f, clean(f)])} />
        <PickFilter name="show" label="Show" values={Object.entries(SHOW)} />
        <a
          className="button"
          href={here({ system: system ? null : 'yes' })}
          aria-current={get('system') ? true : undefined}
          title="system:*, and service accounts of kube-* namespaces"
        >
          {get('system') ? 'Without' : 'With'} Kubernetes’ own
        </a>
      </Filters>
      <Card
        title="Who"
        note={
          uses.data && (
            <>
              {sorted.length === mine.length
                ? plural(mine.length, 'subject')
                : `${count(sorted.length)} of ${plural(mine.length, 'subject')}`}
              {waits ? <span role="status"> · weighing their rights …</span> : <Weighed of={excess.data} />}
            </>
          )
        }
        actions={pick}
        flush
      >
        {[excess, dangers].map(
          (q, i) =>
            q.error &&
            q.error.status !== 404 && (
              <p key={i} className={css.lacking} role="alert">
                Rights are not all known: {clean(q.error.message)}
              </p>
            ),
        )}
        <Question
          asks={all}
          lines={14}
          empty={() =>
            !sorted.length &&
            (mine.length ? 'Nobody matches these filters.' : 'No request is stored of this time, and no binding names anybody.')
          }
        >
          {() => (
            <DataTable
              label="Subjects"
              columns={shown}
              rows={sorted}
              rowKey={(s) => s.id}
              sort={sort}
              href={(s) => (s.kind === 'group' ? to('/access', { subject: s.id }) : to(pathOf('subjects', s.name)))}
            />
          )}
        </Question>
      </Card>
    </Page>
  );
}

/** SHOW are questions people come with. */
const SHOW: Record<string, string> = {
  dangerous: 'dangerous rights',
  idle: 'dangerous and unused',
  unseen: 'never seen',
  refused: 'was refused',
  unused: 'uses less than half',
};

/** fits reports whether a subject is one of those that a question is about; what is unused is the right that is asked for, if one is. */
function fits(s: Subject, show: string, flag: string): boolean {
  if (show === 'dangerous') return s.flags.length > 0;
  if (show === 'idle') return s.flags.some((f) => f.unused && !f.through && (!flag || f.id === flag));
  if (show === 'unseen') return s.requests === 0 && s.kind !== 'group';
  return show === 'refused' ? s.refused > 0 : show === 'unused' ? share(s) > 0.5 : true;
}

/** MOST_FLAGS is how many a row shows: the worst, and the one that was asked for. */
const MOST_FLAGS = 4;

function Flags({ of }: { of: Subject }) {
  const asked = useLinks().params.get('flag');
  const flags = [...of.flags].sort((x, y) => Number(y.id === asked) - Number(x.id === asked));
  const rest = flags.slice(MOST_FLAGS);
  return (
    <span className={css.flags}>
      {flags.slice(0, MOST_FLAGS).map((f) => (
        <Tag
          key={f.id}
          tone={f.id === 'cluster-admin' ? 'critical' : 'warn'}
          title={clean(f.text) + (f.through && `, through group ${clean(f.through)}`) + (f.unused ? ', never used' : '')}
        >
          {clean(f.id)}
          {f.through && <span className={css.through}> by group</span>}
          {f.unused && <span className={css.through}> unused</span>}
        </Tag>
      ))}
      {rest.length > 0 && (
        <span className="soft" title={rest.map((f) => clean(f.id)).join(', ')}>
          and {rest.length} more
        </span>
      )}
    </span>
  );
}

/** Weighed sums up what all suggestions come to. */
function Weighed({ of: a }: { of: Answer<'suggest'> | undefined }) {
  const list = a?.suggestions ?? [];
  if (!list.length) return null;
  const sum = (of: (s: (typeof list)[number]) => number) => list.reduce((n, s) => n + of(s), 0);
  const held = list.filter((s) => s.proof.holds).length;
  return (
    <>
      {' '}
      · excess {count(sum((s) => s.excess.before))}, {count(sum((s) => s.excess.after))} if every suggestion were applied;{' '}
      {held === list.length ? 'every proof holds' : `${count(held)} of ${count(list.length)} proofs hold`}
      {a?.plan?.holds && ', and all together'}
    </>
  );
}

/** Change says how large the suggestion is. */
function Change({ of: { suggested: s } }: { of: Subject }) {
  if (!s) return null;
  if (!s.size.apply && !s.size.remove) return <span className="soft">none</span>;
  return (
    <>
      {plural(s.size.apply, 'object')}, {plural(s.size.remove, 'removal')}
    </>
  );
}

/** Share is how much of what a subject's own bindings grant was never used, weighed by danger. */
function Share({ of: s }: { of: Subject }) {
  if (s.kind === 'group' || s.held === undefined) return <span className="soft">–</span>;
  if (!s.held)
    return (
      <span className="soft" title="No binding names it: what it may do comes by its groups">
        holds nothing itself
      </span>
    );
  return (
    <span className={css.share} title={`${count(s.excess)} of ${count(s.held)}, weighed by danger`}>
      <i aria-hidden>
        <b style={{ width: `${100 * share(s)}%` }} />
      </i>
      {percent(s.excess ?? 0, s.held)}
    </span>
  );
}
