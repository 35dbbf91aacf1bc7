// What stands beside the decision: the facts of the request, the life of its credential, and what its subject did just before and after.
import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Question } from '../../kit/Card';
import { Life } from '../../kit/Credential';
import { Name, Names, Request, Who, Whole } from '../../kit/Name';
import { Decision } from '../../kit/Tag';
import { apart, Time } from '../../kit/Time';
import { Fact, Part } from './Part';
import { recordOf, useLineage, useNeighbours, type Judged } from './queries';
import css from './event.module.css';

/** Opens makes the address of another request: beside the page, or as a page. */
export type Opens = (auditID: string, request?: string) => string;

/** Facts are what the event says, and who it was. */
export function Facts({ request: r }: { request: Judged }) {
  const v = r.verdict;
  const e = recordOf(r);
  const user = e.impersonatedUser ?? e.user;
  return (
    <Part title="The request">
      <dl className={css.facts}>
        <Fact title="Asked"><b><Name plain most={30}>{e.verb}</Name></b> <Whole most={300}>{e.requestURI ?? ''}</Whole></Fact>
        <Fact title="User"><Who subject={e.user?.username} most={1000} /></Fact>
        {e.impersonatedUser && <Fact title="Acting as"><Who subject={e.impersonatedUser.username} most={1000} /></Fact>}
        <Fact title="Groups"><Names list={user?.groups} /></Fact>
        {v.explained?.length ? <Fact title="Explained by"><Names list={v.explained} /></Fact> : null}
        {r.authenticators?.length ? (
          <Fact title="Authenticators">
            <details><summary>What each says</summary><ul className={css.lines}>{r.authenticators.map((a, i) => (
              <li key={i}><Name most={100}>{a.authenticator}</Name>: {a.certain ? 'produces this identity' : a.possible ? 'can have produced it' : 'cannot'}{a.why && <span className="soft">: <Name plain most={600}>{a.why}</Name></span>}</li>
            ))}</ul></details>
          </Fact>
        ) : null}
        <Fact title="From"><Names list={e.sourceIPs} />{e.userAgent && <div className="soft"><Whole most={200}>{e.userAgent}</Whole></div>}</Fact>
        <Fact title="Received"><Time at={e.requestReceivedTimestamp} /></Fact>
        <Fact title="Answered">{e.responseStatus?.code ?? '–'}{e.responseStatus?.message && <> <Whole most={300}>{e.responseStatus.message}</Whole></>}</Fact>
        <Fact title="Stages">{(r.stages ?? []).map((s, i) => <div key={i}><Name plain>{s.stage}</Name> <span className="soft"><Time at={s.time} short />{s.code ? `, ${s.code}` : ''}</span></div>)}</Fact>
        <Fact title="Cluster"><Name>{r.cluster}</Name>{r.apiserver && <>, apiserver <Name>{r.apiserver}</Name></>} <span className="soft">(by <Name plain>{r.source}</Name>)</span></Fact>
        {r.twin && <Fact title="Also recorded by"><Name most={400}>{r.twin}</Name></Fact>}
        <Fact title="Audit ID"><Whole>{e.auditID ?? ''}</Whole></Fact>
        {v.engine !== undefined && <Fact title="Decided by">engine <Name>{v.engine}</Name>, configuration <Name>{v.config}</Name></Fact>}
      </dl>
    </Part>
  );
}

/** Credential is the life of the one the request came with: from its issue to every use. */
export function Credential({ request: r, opens }: { request: Judged; opens: Opens }) {
  const { here } = useLinks();
  const id = r.verdict.credential ?? '';
  const asks = useLineage(r.cluster, id);
  const now = recordOf(r).requestReceivedTimestamp ?? '';
  const alone = here({ credential: id, why: null, request: null, finding: null });
  return (
    <Part title="Its credential" note={<a href={alone}><Name most={200}>{id}</Name></a>}>
      <Question asks={asks} lines={4} empty={(a) => !a.credentials.length && 'Nothing else is known of it.'}>
        {(a) => <>{a.credentials.map((c, i) => <Life key={i} of={c} now={now} opens={opens} />)}</>}
      </Question>
    </Part>
  );
}

/** Neighbours are what the subject did just before and just after. */
export function Neighbours({ request: r, opens }: { request: Judged; opens: Opens }) {
  const { asks, before, after } = useNeighbours(r);
  const e = recordOf(r);
  const row = (x: Schemas['Event']) => (
    <li key={x.request + x.stage}>
      <span className={css.apart}>{distance(x.time, e.requestReceivedTimestamp ?? '')}</span>
      {x.auditID ? <a href={opens(x.auditID, x.request)}><Request verb={x.verb} uri={x.requestURI} /></a> : <Request verb={x.verb} uri={x.requestURI} />}
      <Decision of={x.recorded} />
    </li>
  );
  return (
    <Part title="Before and after" note="requests of the same subject">
      <Question asks={asks} lines={6}>
        {() => (
          <ol className={css.neighbours}>
            {after.map(row)}
            <li aria-current="true"><span className={css.apart}>now</span><Request verb={e.verb ?? ''} uri={e.requestURI ?? ''} /><Decision of={r.verdict.recorded} /></li>
            {before.map(row)}
          </ol>
        )}
      </Question>
    </Part>
  );
}

/** distance says how long before (−) or after (+) another time one is. */
function distance(time: string, than: string): string {
  const ms = Date.parse(time) - Date.parse(than);
  const sign = ms < 0 ? '−' : '+';
  return Math.abs(ms) < 1000 ? `${sign}${Math.abs(ms)} ms` : `${sign}${apart(new Date(time), new Date(than)).replace(/ (ago|later)$/, '')}`;
}
