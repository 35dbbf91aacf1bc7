import type { Answer } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Empty, Question } from '../../kit/Card';
import { Name, Names, Who } from '../../kit/Name';
import { Time } from '../../kit/Time';
import { clean, count, plural } from '../../kit/words';
import { useCredentials } from './queries';
import css from './subject.module.css';

type Credential = Answer<'lineage'>['credentials'][number];

/** Credentials shows what it authenticated with, from the request that issued each to every place it was used from. */
export function Credentials({ name }: { name: string }) {
  const asks = useCredentials(name);
  return (
    <Card title="Credentials" note="from issue to use">
      {asks.error?.status === 404 ? <Empty>{clean(asks.error.message)}</Empty> : (
        <Question asks={asks} lines={3} empty={(a) => !a.credentials.length && 'Its events tell of no credential.'}>
          {(a) => (
            <ul className={css.credentials}>
              {a.credentials.map((c, i) => <li key={c.credential || i}><Life of={c} /></li>)}
              {a.truncated && <li className="soft">There are more credentials than shown here.</li>}
            </ul>
          )}
        </Question>
      )}
    </Card>
  );
}

function Life({ of: c }: { of: Credential }) {
  const { here } = useLinks();
  return (
    <details>
      <summary>
        {c.credential ? <Name most={48}>{c.credential}</Name> : <span>Not told by the events</span>}
        <span className="soft"> {c.requests ? plural(c.requests, 'request') : 'never used'}{c.forbidden > 0 && `, ${count(c.forbidden)} refused`}{(c.contradictions?.length ?? 0) > 0 && <b className="bad"> · {plural(c.contradictions?.length, 'contradiction')}</b>}</span>
      </summary>
      <dl className={css.facts}>
        {c.issue && <><dt>Issued</dt><dd><Time at={c.issue.at} />{c.issue.by && <> by <Who subject={c.issue.by} /></>} {c.issue.auditID && <a href={here({ why: c.issue.auditID, request: null })}>the request</a>}</dd></>}
        {!c.issue && c.credential && <><dt>Issued</dt><dd className="soft">no recorded request shows it</dd></>}
        {(c.users?.length ?? 0) > 1 && <><dt>Used as</dt><dd>{c.users?.map((u, i) => <span key={u}>{i > 0 && ', '}<Who subject={u} /></span>)}</dd></>}
        {c.first && <><dt>Used</dt><dd><Time at={c.first} /> – <Time at={c.last} /></dd></>}
        {(c.explained?.length ?? 0) > 0 && <><dt>Taken by</dt><dd><Names list={c.explained} /></dd></>}
        {c.contradictions?.map((x) => <div key={x.name} className={css.fact}><dt>Contradiction</dt><dd><b><Name>{x.name}</Name></b>: <Name plain most={600}>{x.evidence}</Name></dd></div>)}
        {c.uses?.slice(0, 8).map((u, i) => (
          <div key={i} className={css.fact}><dt>From</dt><dd>{u.from && <Name most={80}>{u.from}</Name>}{u.pod && <> pod <Name most={120}>{u.pod}</Name></>}{u.node && <> on <Name most={120}>{u.node}</Name></>}{u.userAgent && <span className="soft"> <Name plain most={120}>{u.userAgent}</Name></span>} <span className="soft">{plural(u.requests, 'request')}</span></dd></div>
        ))}
        {((c.uses?.length ?? 0) > 8 || c.more) && <><dt /><dd className="soft">and from more places</dd></>}
      </dl>
    </details>
  );
}
