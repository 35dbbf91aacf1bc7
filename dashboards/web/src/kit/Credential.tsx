import type { Schemas } from '../api/ask';
import { Name, Names, Who } from './Name';
import { Time } from './Time';
import { count, plural } from './words';
import css from './credential.module.css';

/** Places of use that are shown at once. */
const FEW = 8;

/** Life shows a credential, from the request that issued it to every place it was used from. now is when the request at hand came
 *  with it; opens makes the address of another request. */
export function Life({ of: c, now, opens }: { of: Schemas['Credential']; now?: string; opens: (auditID: string) => string }) {
  const uses = c.uses ?? [];
  return (
    <div className={css.all}>
      <ol className={css.life}>
        <li>
          <b>Issued</b>{' '}
          {c.issue ? <Issue of={c.issue} /> : <span className="soft">{c.credential ? 'by no recorded request' : 'the events do not tell'}</span>}
          {c.issue?.auditID && <> <a href={opens(c.issue.auditID)}>the request</a></>}
        </li>
        {c.first && <li><b>First used</b> <Time at={c.first} /></li>}
        {now && <li aria-current="true"><b>This request</b> <Time at={now} /></li>}
        {c.last ? (
          <li>
            <b>Last used</b> <Time at={c.last} />{' '}
            <span className="soft">{plural(c.requests, 'request')} in all{c.forbidden > 0 && `, ${count(c.forbidden)} refused`}</span>
          </li>
        ) : <li><b>Used</b> <span className="soft">{c.requests ? plural(c.requests, 'time') : 'never'}</span></li>}
      </ol>
      {(c.contradictions?.length ?? 0) > 0 && (
        <ul className={css.lines}>
          {c.contradictions?.map((f, i) => (
            <li key={i} className="bad"><Name most={100}>{f.name}</Name>: <Name plain most={600}>{f.evidence}</Name></li>
          ))}
        </ul>
      )}
      {c.users?.length > 0 && <p>Used as {c.users.map((u, i) => <span key={u}>{i > 0 && ', '}<Who subject={u} most={400} /></span>)}</p>}
      {(c.explained?.length ?? 0) > 0 && <p>Taken by <Names list={c.explained} /></p>}
      {uses.length > 0 && (
        <>
          <h3>Used from</h3>
          <Uses list={uses.slice(0, FEW)} />
          {uses.length > FEW && (
            <details><summary data-row>{plural(uses.length - FEW, 'more place')}</summary><Uses list={uses.slice(FEW)} /></details>
          )}
          {c.more ? <p className="soft">It was used from more places than are listed.</p> : null}
        </>
      )}
    </div>
  );
}

function Uses({ list }: { list: Schemas['CredentialUse'][] }) {
  return (
    <ul className={css.lines}>
      {list.map((u, i) => (
        <li key={i}>
          {u.from ? <Name most={80}>{u.from}</Name> : <span className="soft">an unknown address</span>}
          {u.pod && <>, pod <Name>{u.pod}</Name></>}
          {u.node && <>, node <Name>{u.node}</Name></>}{' '}
          <span className="soft">
            {plural(u.requests, 'request')}{u.first && <>, <Time at={u.first} /> – <Time at={u.last} short /></>}
            {u.userAgent && <> · <Name plain most={160}>{u.userAgent}</Name></>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Issue({ of: is }: { of: Schemas['Issue'] }) {
  const of: [string, string | undefined][] = [
    ['for service account', is.serviceAccount], ['pod', is.pod], ['node', is.node], ['Secret', is.secret],
    ['signing request', is.csr], ['signer', is.signer], ['name', is.commonName],
  ];
  return (
    <>
      <Time at={is.at} /> by {is.by ? <Who subject={is.by} most={200} /> : 'an unknown user'}
      {is.from && <> from <Name most={80}>{is.from}</Name></>}
      <span className="soft">
        {of.filter(([, x]) => x).map(([what, x]) => <span key={what}>, {what} <Name most={200}>{x}</Name></span>)}
        {is.organizations?.length ? <>, groups <Names list={is.organizations} /></> : null}
        {is.expires && <>, valid until <Time at={is.expires} /></>}
      </span>
    </>
  );
}
