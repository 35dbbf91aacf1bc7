import { useMemo } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { pathOf, useLinks, type Changes } from '../../kit/address';
import { Empty, Question } from '../../kit/Card';
import { DataTable, useColumns, type Column } from '../../kit/DataTable';
import { Name, Names, Subject } from '../../kit/Name';
import { userOf } from '../../kit/Rule';
import { Tag } from '../../kit/Tag';
import { count, plural, table } from '../../kit/words';
import { useAsking, useHolders } from './queries';
import css from './access.module.css';

/** Held is a subject that can, in one scope. */
interface Held {
  key: string;
  id: string;
  kind: string;
  name: string;
  /** where is a namespace; '' is everywhere. */
  where: string;
  grants: Schemas['Grant'][];
  /** change says what became of it since the moment that is compared with. */
  change: 'gained' | 'lost' | '';
}

const KINDS: Record<string, string> = table({ User: 'user', Group: 'group', ServiceAccount: 'service account' });

/** Holders answers who can. */
export function Holders() {
  const { params, here } = useLinks();
  const { at, since } = useAsking();
  const now = useHolders(at);
  const then = useHolders(since || null);
  const compared = since !== '' && then.data !== undefined;
  const all = useMemo(() => joined(now.data, compared ? then.data : undefined), [now.data, then.data, compared]);
  const via = params.get('via');
  const list = via ? all.filter((h) => h.grants.some((g) => g.binding === via || g.role === via)) : all;
  const map = params.get('view') === 'map';
  const { shown, pick } = useColumns(compared ? [CHANGE, ...COLUMNS] : COLUMNS);
  const people = new Set(list.filter((h) => h.change !== 'lost').map((h) => h.id));
  return (
    <Question asks={now} lines={10}>
      {(a) => (
        <>
          <Said of={a} />
          <div className={css.above}>
            <p role="status">
              <b>{plural(people.size, 'subject')}</b> can{tally(list.filter((h) => h.change !== 'lost'))}.
              {compared && <> Since then <b>{count(list.filter((h) => h.change === 'gained').length)}</b> gained it and <b>{count(list.filter((h) => h.change === 'lost').length)}</b> lost it.</>}
            </p>
            <div className={css.acts}>
              {via && <a className="button" href={here({ via: null })}>Only through <Name most={60}>{via}</Name> <span aria-hidden>✕</span></a>}
              <a className="button" href={here({ view: map ? null : 'map' })}>{map ? 'As table' : 'As map'}</a>
              {!map && pick}
            </div>
          </div>
          {then.error && <p className={css.warn} role="alert">The other time is not known: {then.error.message}</p>}
          {!list.length ? <Empty>{via ? 'Nobody, through that.' : 'Nobody, as far as is known.'}</Empty> : map ? <Spread list={list} /> : (
            <DataTable label="Who can" columns={shown} rows={list} rowKey={(h) => h.key} />
          )}
        </>
      )}
    </Question>
  );
}

const CHANGE: Column<Held> = { id: 'change', head: 'Since then', width: '84px', cell: (h) => (h.change ? <Tag tone={h.change === 'gained' ? 'warn' : 'good'}>{h.change === 'gained' ? '+ gained' : '− lost'}</Tag> : <span className="soft">had it</span>) };

const COLUMNS: Column<Held>[] = [
  { id: 'subject', head: 'Subject', width: 'minmax(150px, 1.3fr)', leads: true, cell: (h) => <Holder of={h} /> },
  { id: 'kind', head: 'Kind', width: '112px', cell: (h) => <span className="soft">{KINDS[h.kind] ?? h.kind}</span> },
  { id: 'where', head: 'Where', width: 'minmax(100px, .9fr)', cell: (h) => <Where>{h.where}</Where> },
  { id: 'grants', head: 'Grants', width: '56px', number: true, cell: (h) => count(h.grants.length) },
  { id: 'through', head: 'Through', width: 'minmax(220px, 2.4fr)', wrap: true, cell: (h) => <Through grants={h.grants} /> },
];

function Where({ children }: { children: string }) {
  return children ? <Name most={100}>{children}</Name> : <>everywhere</>;
}

function Holder({ of: h }: { of: Held }) {
  const { to } = useLinks();
  const { at, since } = useAsking();
  const href = h.kind === 'Group' ? to('/access', { subject: h.id, at, since }) : to(pathOf('subjects', h.name));
  return <a className={css.holder} href={href} data-row><Subject most={120}>{h.name}</Subject></a>;
}

/** Through draws each grant: binding → role. Both lead to who else has it by them; asks is the question, if it is not the page's. */
export function Through({ grants, asks }: { grants: Schemas['Grant'][]; asks?: Changes }) {
  const links = useLinks();
  const { at, since } = useAsking();
  const only = (via: string) => (asks ? links.to('/access', { ...asks, at, since, via }) : links.here({ via }));
  return (
    <ul className={css.through}>
      {grants.slice(0, 3).map((g, i) => (
        <li key={i}>
          {g.kind === 'superuser' || !g.binding ? <span className="soft">needs no grant: members may do everything</span> : (
            <><a href={only(g.binding)} title="Only what comes through this binding"><Name most={90}>{g.binding}</Name></a> <span aria-label="to" role="img" className="soft">→</span> <a href={only(g.role)} title="Only what comes through this role"><Name most={90}>{g.role}</Name></a> <span className="soft">rule {g.rule}{asks && (g.verbs?.length ?? 0) > 0 && <>, only <Names list={g.verbs} most={8} /></>}</span></>
          )}
        </li>
      ))}
      {grants.length > 3 && <li className="soft">and {count(grants.length - 3)} more</li>}
    </ul>
  );
}

/** Spread shows in which namespaces each can: those who can everywhere first. */
function Spread({ list }: { list: Held[] }) {
  const places = [...new Set(list.map((h) => h.where))].sort();
  const whole = places.includes('');
  const namespaces = places.filter(Boolean);
  const by = new Map<string, Held[]>();
  for (const h of list) by.set(h.id, [...(by.get(h.id) ?? []), h]);
  const rows = [...by.values()].sort((a, b) => Number(b.some((h) => !h.where)) - Number(a.some((h) => !h.where)) || b.length - a.length);
  const shown = namespaces.slice(0, 40);
  return (
    // What scrolls has to be reachable by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={css.mapped} tabIndex={0} role="region" aria-label="Map of namespaces and holders">
      <table className={css.map}>
        <caption className="unseen">Who can, by namespace</caption>
        <thead><tr><th scope="col">Subject</th>{whole && <th scope="col"><span>everywhere</span></th>}{shown.map((n) => <th key={n} scope="col"><span><Name most={40}>{n}</Name></span></th>)}</tr></thead>
        <tbody>
          {rows.slice(0, 300).map((held) => held[0] && (
            <tr key={held[0].id}>
              <th scope="row"><Holder of={held[0]} /></th>
              {[...(whole ? [''] : []), ...shown].map((n) => {
                const at = held.find((h) => h.where === n);
                const all = held.some((h) => !h.where && h.change !== 'lost');
                return <td key={n}>{at ? <Dot of={at} /> : n && all ? <span className={css.implied} title="everywhere, so here too"><i aria-hidden /><span className="unseen">everywhere, so here too</span></span> : null}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {namespaces.length > shown.length && <p className="soft">and {count(namespaces.length - shown.length)} more namespaces: the table has them</p>}
    </div>
  );
}

function Dot({ of: h }: { of: Held }) {
  const said = h.change || 'can';
  return <span className={css.dot} data-change={h.change || undefined} title={`${said}: ${h.grants.map((g) => g.binding).join(', ').slice(0, 300)}`}><i aria-hidden>{h.change === 'gained' ? '+' : h.change === 'lost' ? '−' : ''}</i><span className="unseen">{said}</span></span>;
}

/** Said shows what may be wrong with the question, and what is not known. */
export function Said({ of: a }: { of: { hints?: string[]; missing?: string[]; known?: boolean } }) {
  return (
    <>
      {a.hints?.map((h) => <p key={h} className={css.warn}><Name plain most={600}>{h}</Name></p>)}
      {a.known === false && (
        <p className={css.warn}>Not all bindings of that time are known: there may be more. <code>retrial import --state</code> supplies them.</p>
      )}
      {(a.missing?.length ?? 0) > 0 && <p className={css.warn}>Not known, and it could add to this: <Names list={a.missing} most={6} /></p>}
    </>
  );
}

function tally(list: Held[]): string {
  const n = (kind: string) => new Set(list.filter((h) => h.kind === kind).map((h) => h.id)).size;
  const parts = Object.entries(KINDS).map(([k, w]) => [n(k), w] as const).filter(([k]) => k).map(([k, w]) => plural(k, w));
  return parts.length ? `: ${parts.join(', ')}` : '';
}

/** joined lists who can now and, when there is an earlier answer, who could then. */
export function joined(now: Answer<'who-can'> | undefined, then: Answer<'who-can'> | undefined): Held[] {
  const of = (a: Answer<'who-can'> | undefined) => (a?.subjects ?? []).map((s): Held => {
    const name = userOf(s);
    const where = s.scope.startsWith('namespace:') ? s.scope.slice('namespace:'.length) : '';
    return { key: JSON.stringify([s.kind, name, where]), id: (s.kind === 'Group' ? 'group:' : 'user:') + name, kind: s.kind, name, where, grants: s.grants, change: '' };
  });
  const list = of(now);
  if (!then) return list;
  const before = of(then);
  const had = new Set(before.map((h) => h.key));
  const has = new Set(list.map((h) => h.key));
  return [...list.map((h) => (had.has(h.key) ? h : { ...h, change: 'gained' as const })), ...before.filter((h) => !has.has(h.key)).map((h) => ({ ...h, change: 'lost' as const }))]
    .sort((a, b) => Number(b.change !== '') - Number(a.change !== ''));
}
