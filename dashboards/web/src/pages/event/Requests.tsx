// The answer to "why was this decided", request by request: an audit ID is chosen by the client and may name several.
import type { Answer } from '../../api/ask';
import { useConstant } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Copy, Text } from '../../kit/Copy';
import { Name, Request, Subject, Who } from '../../kit/Name';
import { asked } from '../../kit/request';
import { command } from '../../kit/shell';
import { Decision, Outcome } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import { plural, sentence } from '../../kit/words';
import { Credential, Facts, Neighbours, type Opens } from './Aside';
import { Denial } from './Denial';
import { Grants, type What } from './Grants';
import { Part } from './Part';
import { recordOf, refused, useHeld, type Judged } from './queries';
import { Trial } from './Trial';
import css from './event.module.css';

/** Requests shows what an audit ID names. opens leads to another request, page to this one as a page of its own. */
export function Requests({ answer, opens, page }: { answer: Answer<'why'>; opens: Opens; page?: string }) {
  const { params } = useLinks();
  const list = answer.requests;
  const at = Math.max(0, list.findIndex((r) => r.request === params.get('request')));
  const chosen = list[at];
  if (!chosen) return null;
  const others = list.filter((_, i) => i !== at);
  return (
    <div className={css.requests}>
      {others.length > 0 && (
        <div className={css.several}>
          <p><b>{plural(list.length, 'request')} carry this audit ID.</b> Clients choose the ID and may reuse it. Shown is <Time at={recordOf(chosen).requestReceivedTimestamp} />; the others:</p>
          <ul className={css.lines}>{others.map((r) => <li key={r.request}><a href={opens(recordOf(r).auditID ?? '', r.request)}><Time at={recordOf(r).requestReceivedTimestamp} /> <Request verb={r.verdict.verb} uri={r.verdict.requestURI} /></a></li>)}</ul>
          {answer.truncated && <p className="soft">There are more than shown here.</p>}
        </div>
      )}
      <One key={chosen.request} request={chosen} opens={opens} page={page} />
    </div>
  );
}

function One({ request: r, opens, page }: { request: Judged; opens: Opens; page?: string | undefined }) {
  const { to } = useLinks();
  const v = r.verdict;
  const e = recordOf(r);
  const user = e.impersonatedUser ?? e.user;
  const held = useHeld(r);
  const what: What | undefined = e.verb && e.requestURI ? { ...asked(e.verb, e.requestURI), at: e.requestReceivedTimestamp ?? '' } : undefined;
  const grants = v.grants ?? [];
  return (
    <article className={css.event}>
      <div className={css.story}>
        <header className={css.hero} data-outcome={v.outcome}>
          <h2 className={css.headline}><Headline of={r} /></h2>
          <p className={css.asked}><Request verb={e.verb ?? v.verb} uri={e.requestURI ?? v.requestURI} /> <span className="soft">· <Time at={e.requestReceivedTimestamp} /></span></p>
          <div className={css.sides}>
            <div><h3>The apiserver recorded</h3><p><Decision of={v.recorded} /></p>{v.recordedReason && <p className="soft"><Name plain most={1000}>{v.recordedReason}</Name></p>}</div>
            <div><h3>The replay decides</h3><p><Decision of={v.replayed} /></p><p className="soft"><Decided by={v} /></p></div>
            <div><h3>Verdict</h3><p><Outcome of={v.outcome} /> {v.class && <span className="soft"><Name>{v.class}</Name></span>}</p><p className="soft"><Meaning of={v} /></p><p><a href={to('/trust', { show: 'verdicts' })}>What verdicts mean</a></p></div>
          </div>
          <div className={css.acts}>
            {page && <a className="button" href={page}>Open as a page</a>}
            <Copy text={command('retrial', 'why', e.auditID ?? v.auditID, '--cluster', r.cluster)} what="as command" />
            {what && <a className="button" href={to('/access', { ...what })}>Who else could do this then?</a>}
            {user?.username && <a className="button" href={to('/findings', { subject: user.username })}>Findings about it</a>}
          </div>
        </header>
        {refused(r) && <Denial request={r} />}
        {grants.length > 0 && (
          <Part title={grants.length === 1 ? 'The one grant that makes it possible' : `${grants.length} grants, each of which makes it possible`}>
            <Grants list={grants} what={what} held={held.data} />
          </Part>
        )}
        <Trial request={r} />
        <Part title="The event" note="as stored, secrets redacted">
          <Text label="The event as JSON">{JSON.stringify(r.event ?? {}, null, 2)}</Text>
        </Part>
      </div>
      <div className={css.aside}>
        <Facts request={r} />
        {user?.username && <Neighbours request={r} opens={opens} />}
        {v.credential && <Credential request={r} opens={opens} />}
      </div>
    </article>
  );
}

function Headline({ of: r }: { of: Judged }) {
  const e = recordOf(r);
  const name = (e.impersonatedUser ?? e.user)?.username;
  const who = name ? <Who subject={name} most={200} /> : <Subject>{name}</Subject>;
  const grants = r.verdict.grants?.length ?? 0;
  switch (r.verdict.replayed) {
    case 'allow': return grants ? <>{who} may do this: {plural(grants, 'grant allows', 'grants allow')} it</> : <>{who} may do this without any grant</>;
    case 'forbid': return <>Nothing allows {who} to do this</>;
  }
  return <>No decision for {who}</>;
}

function Decided({ by: v }: { by: Judged['verdict'] }) {
  switch (v.authorizer) {
    case 'masters': return 'The group system:masters may do everything; no other authorizer is asked.';
    case 'node': return 'The node authorizer allows this to kubelets.';
    case 'rbac': return 'By RBAC, through the grants below.';
  }
  if (v.replayed === 'allow' && v.authorizer) return <>By the authorizer <Name>{v.authorizer}</Name>.</>;
  return v.replayed === 'forbid' ? 'No authorizer allows it.' : 'It cannot be decided.';
}

function Meaning({ of: v }: { of: Judged['verdict'] }) {
  const known = useConstant('classes').data;
  const outcome = known?.outcomes.find((o) => o.outcome === v.outcome)?.text;
  const meaning = known?.classes.find((c) => c.class === v.class)?.text;
  return <>{v.outcome !== 'match' && v.cause && <><Name plain most={1000}>{sentence(v.cause)}</Name> </>}{sentence(v.outcome === 'match' ? outcome : (meaning ?? outcome))}</>;
}
