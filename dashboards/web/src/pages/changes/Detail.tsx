import { useEffect, useRef, type ReactNode } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { pathOf, useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { fileName, Text } from '../../kit/Copy';
import { Name, Names, Subject } from '../../kit/Name';
import { filtersOf, whatOf } from '../../kit/request';
import { ChangedRules, Person, userOf } from '../../kit/Rule';
import { Time } from '../../kit/Time';
import { count, plural, sentence } from '../../kit/words';
import { keyOf, useChange, type Write } from './queries';
import { Author, Effect } from './Write';
import css from './changes.module.css';

/** What is shown at once: subjects, rules of each, and lines of what came of it. */
const MOST = { subjects: 8, rules: 6, lines: 12 };

type Came = Schemas['PolicyChangeDetail'];

/** narrow reports whether there is no room beside the list. */
export function narrow(): boolean {
  return matchMedia('(max-width: 1079px)').matches;
}

/** Detail shows what the writes of a request changed, and what came of it. It takes the focus; Esc closes it, and the focus goes back to the
 *  write in the list. */
export function Detail({ id }: { id: string }) {
  const { here, to, change } = useLinks();
  const asks = useChange(id);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const it = place.current;
    const close = (e: KeyboardEvent) => {
      if (e.key === 'Escape' && !e.defaultPrevented) change({ id: null });
    };
    it?.addEventListener('keydown', close);
    return () => it?.removeEventListener('keydown', close);
  }, [change]);
  useEffect(() => {
    place.current?.focus({ preventScroll: true });
    if (narrow()) place.current?.scrollIntoView({ block: 'start' });
    return () => {
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) rowOf(id)?.focus({ preventScroll: true });
      });
    };
  }, [id]);
  const acts = (
    <>
      <a className="button" href={to(pathOf('events', id))}>The request</a>
      <a className="button" href={here({ id: null })}>Close</a>
    </>
  );
  return (
    <div className={css.detail} ref={place} tabIndex={-1}>
      <Card title="What came of it" actions={acts}>
        <Question asks={asks} lines={12}>
          {(a) => (
            <div className={css.parts}>
              <ul className={css.heads}>{a.changes.map((w) => <Head key={keyOf(w)} of={w} />)}</ul>
              {a.detail && <Parts of={a.detail} writes={a.changes} />}
            </div>
          )}
        </Question>
      </Card>
    </div>
  );
}

/** rowOf is the link of a write in the list, if it is in sight. */
function rowOf(id: string): HTMLElement | undefined {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('#main [role=table] a[data-row]')];
  return links.find((a) => new URLSearchParams(a.hash.split('?')[1]).get('id') === id);
}

function Head({ of: w }: { of: Write }) {
  const { to } = useLinks();
  const stays = !w.verb.startsWith('delete');
  return (
    <li>
      <p><Author of={w} /> <b className={css.verb}><Name plain most={30}>{w.verb}</Name></b> <Name most={300}>{w.object}</Name></p>
      <p className={css.facts}>
        <Effect of={w.effect} /> <Time at={w.time} />
        {stays && <> · <a href={to('/whatif', { delete: w.object, range: null, from: null, to: null })}>What if it were deleted?</a></>}
      </p>
      {w.code >= 500 && <p className={css.warn}>The apiserver answered {w.code}: it may not have been done.</p>}
      {(w.objects?.length ?? 0) > 0 && <p className="soft">{plural(w.objects?.length, 'object')}: <Names list={w.objects} most={6} /></p>}
    </li>
  );
}

function Parts({ of: d, writes }: { of: Came; writes: Answer<'policy-changes'>['changes'] }) {
  const { to } = useLinks();
  const access = d.access as Came['access'] | null; // null where nothing is known to have changed
  const times = writes.map((w) => Date.parse(w.time));
  const iso = (t: number) => new Date(t).toISOString();
  // until is an hour after the last of it was in force; times of the address have milliseconds.
  const span = { since: iso(Math.min(...times) - 1), at: iso(Date.parse(d.until) - 3_600_000 + 1) };
  const range = { from: iso(Math.min(...times)), to: d.until, range: null };
  const refused = d.refusals.length > 0 || d.otherRefusals > 0;
  return (
    <>
      <Part title="Access gained and lost" href={access && to('/access', span)} leads="Access before and after">
        {access && <Access of={access} all={(subject) => to('/access', { ...span, subject })} />}
        {!access && <p className="soft">No object is known to have changed.</p>}
      </Part>
      <Part title="Refused in the hour after" href={refused && to('/explore', { ...range, decision: 'forbid' })} leads="All refused then">
        <Refused of={d} />
      </Part>
      <Part title="Asked for the first time in the hour after">
        {d.firstUses.length > 0 ? <FirstUses of={d} /> : <p className="soft">Those concerned asked for nothing new.</p>}
      </Part>
      <Part title="Revert"><Revert of={d.revert} id={writes[0]?.auditID ?? ''} /></Part>
      {d.more && <p className="soft">There is more of either than the answer has.</p>}
    </>
  );
}

interface PartProps {
  title: string;
  /** href is where all of it is, which leads says. */
  href?: string | false | null;
  leads?: string;
  children: ReactNode;
}

function Part({ title, href, leads, children }: PartProps) {
  return (
    <section className={css.part}>
      <header><h3>{title}</h3>{href && <a href={href}>{leads}</a>}</header>
      {children}
    </section>
  );
}

/** Access lists by subject what was gained and lost. all is where the whole of a subject's is. */
function Access({ of: a, all }: { of: Came['access']; all: (subject: string | null) => string }) {
  const missing = [...new Set([...a.missingBefore, ...a.missingAfter])];
  const beyond = a.subjects.length - MOST.subjects + a.more;
  return (
    <>
      {!a.known && <p className={css.warn}>Not all bindings of that time are known: there may be more.</p>}
      {missing.length > 0 && <p className={css.warn}>Not known, and it could add to this: <Names list={missing} most={4} /></p>}
      {!a.subjects.length && <p className="soft">{a.known && !missing.length ? 'Everybody can do what they could.' : 'None known.'}</p>}
      <ul className={css.subjects}>
        {a.subjects.slice(0, MOST.subjects).map((s) => {
          return (
            <li key={JSON.stringify([s.kind, s.namespace, s.name])}>
              <p className={css.subject}><Person of={s} /></p>
              <ChangedRules scopes={s.scopes} most={MOST.rules} more={(n) => <a href={all(s.kind === 'Group' ? `group:${s.name}` : userOf(s))}>and {count(n)} more rules</a>} />
            </li>
          );
        })}
      </ul>
      {beyond > 0 && <a href={all(null)}>and {plural(beyond, 'more subject')}</a>}
    </>
  );
}

/** Revert shows how to take it back, as the server wrote it. */
function Revert({ of: r, id }: { of: Came['revert']; id: string }) {
  return (
    <>
      {r.warnings.map((w, i) => <p key={i} className={css.warn}><Name plain most={600}>{sentence(w)}</Name></p>)}
      {r.text ? <Text label="Commands that revert it" file={`${fileName('revert', id)}.sh`}>{r.text}</Text>
        : !r.warnings.length && <p className="soft">There is nothing to take back: all is as it was before.</p>}
    </>
  );
}

function Refused({ of: d }: { of: Came }) {
  const { here } = useLinks();
  return (
    <>
      {!d.refusals.length && <p className="soft">Nothing was refused for it.</p>}
      <Lines list={d.refusals} of="refusals" line={(r) => (
        <>
          <a href={here({ why: r.auditID, request: null })} data-row>
            <b className={css.verb}><Name plain most={30}>{r.verb}</Name></b> <Name most={160}>{whatOf(r)}</Name>
          </a>
          <Places of={r} />
          <span className={css.of}>
            <Subject most={80}>{r.subject}</Subject>{' '}
            <span className="soft">{plural(r.requests, 'request')}, first <Time at={r.first} short /></span>
          </span>
        </>
      )} />
      {d.otherRefusals > 0 && <p className="soft">Refused for other reasons: {plural(d.otherRefusals, 'request')} of those concerned.</p>}
    </>
  );
}

function Places({ of: r }: { of: Came['refusals'][number] }) {
  const beyond = Math.max(0, r.namespaceCount - r.namespaces.length);
  if (!r.namespaces.some(Boolean)) return null;
  return <span className="soft"> in <Names list={r.namespaces.map((n) => n || '(no namespace)')} most={3} beyond={beyond} /></span>;
}

function FirstUses({ of: d }: { of: Came }) {
  const { to } = useLinks();
  return (
    <Lines list={d.firstUses} of="first uses" line={(u) => (
      <>
        <a href={to('/explore', { ...filtersOf(u), from: u.first, to: d.until, range: null })} data-row>
          <b className={css.verb}><Name plain most={30}>{u.verb}</Name></b> <Name most={160}>{whatOf(u)}</Name>
          {u.name && <> <Name most={120}>{u.name}</Name></>}
        </a>
        {u.namespace && <span className="soft"> in <Name most={80}>{u.namespace}</Name></span>}
        <span className={css.of}>
          <Subject most={80}>{u.subject}</Subject>{' '}
          <span className="soft">
            first <Time at={u.first} short />, {plural(u.requests, 'request')}{u.forbidden > 0 && `, ${count(u.forbidden)} refused`}
          </span>
        </span>
      </>
    )} />
  );
}

/** Lines shows some at once, and the others when they are asked for. */
function Lines<T>({ list, line, of }: { list: T[]; line: (item: T) => ReactNode; of: string }) {
  const rest = list.slice(MOST.lines);
  const some = (items: T[]) => <ul className={css.lines}>{items.map((item, i) => <li key={i}>{line(item)}</li>)}</ul>;
  return (
    <>
      {list.length > 0 && some(list.slice(0, MOST.lines))}
      {rest.length > 0 && <details><summary>{count(rest.length)} more {of}</summary>{some(rest)}</details>}
    </>
  );
}
