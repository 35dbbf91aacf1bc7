// The parts of the answer beside the decision itself: what each authorizer answered, what was checked behind them, what a review was
// told, and what does not fit.
import type { Schemas } from '../../api/ask';
import { Name, Who } from '../../kit/Name';
import { Decision, Outcome } from '../../kit/Tag';
import { Grants } from './Grants';
import { Lines, Part } from './Part';
import { refused, type Judged } from './queries';
import css from './event.module.css';

/** Trial shows what there is of them. What each authorizer answered to a request that was refused is told by Denial. */
export function Trial({ request: r }: { request: Judged }) {
  const v = r.verdict;
  return (
    <>
      {r.chain?.length && !refused(r) ? <Part title="The authorizers, in order"><Chain steps={r.chain} /></Part> : null}
      {v.errors?.length ? <Part title="Roles that bindings refer to and that do not exist" tone="bad"><Lines list={v.errors} /></Part> : null}
      {v.missing?.length ? <Part title="What is needed to decide"><Lines list={v.missing} /></Part> : null}
      {v.impersonation && <Part title="May the requestor act as this user?"><Impersonation of={v.impersonation} /></Part>}
      {v.implied?.length ? <Part title="Checked behind the authorizers"><ol className={css.lines}>{v.implied.map((c, i) => <li key={i}><Check of={c} /></li>)}</ol></Part> : null}
      {v.review && <Part title="What this review was answered"><Review of={v.review} /></Part>}
      {v.identity?.length ? (
        <Part title="Contradictions in the event, and what is worth knowing about its identity" tone="bad">
          <ul className={css.lines}>{v.identity.map((f, i) => <li key={i}><b><Name most={100}>{f}</Name></b>{v.evidence?.[i] && <>: <Name plain most={1500}>{v.evidence[i]}</Name></>}</li>)}</ul>
        </Part>
      ) : null}
      {v.admission?.answers?.length ? (
        <Part title="Admission">
          <ul className={css.lines}>{v.admission.answers.map((a, i) => <li key={i}><Name>{a.plugin}</Name>{a.name && <> <Name>{a.name}</Name></>}: <Name plain>{a.outcome}</Name>{a.reason && <span className="soft"> · <Name plain most={400}>{a.reason}</Name></span>}</li>)}</ul>
        </Part>
      ) : null}
    </>
  );
}

function Chain({ steps }: { steps: Schemas['VerdictChainStep'][] }) {
  return (
    <ol className={css.chain}>
      {steps.map((s, i) => (
        <li key={i} data-answer={s.answer}>
          <Name most={200}>{s.authorizer}</Name> <b><Name plain most={60}>{s.answer}</Name></b>
          {s.reason && <span className="soft"> <Name plain most={1000}>{s.reason}</Name></span>}
        </li>
      ))}
    </ol>
  );
}

function Impersonation({ of: im }: { of: Schemas['VerdictImpersonationLine'] }) {
  return (
    <div className={css.stack}>
      <p><Decision of={im.replayed} /> {im.mode && <span className="soft"><Name plain most={200}>{im.mode}</Name></span>}{im.recorded === 'forbid' && <span className="soft"> (the apiserver refused it)</span>}</p>
      {im.cause && <p><Name plain most={1500}>{im.cause}</Name></p>}
      <Lines list={im.missing} />
      {im.grants?.length > 0 && <Grants list={im.grants} />}
    </div>
  );
}

function Check({ of: c }: { of: Schemas['VerdictImpliedLine'] }) {
  return (
    <div className={css.stack}>
      <p>
        <Name most={80}>{c.check}</Name>{c.asked && <>: <Name most={600}>{c.asked}</Name></>}{' '}
        {c.covered ? <span className="good">not needed: the subject holds what it grants</span> : <Decision of={c.replayed} />}
        {c.recorded && c.recorded !== 'none' && c.recorded !== c.replayed && <b className="bad"> the apiserver's response shows: <Name plain>{c.recorded}</Name></b>}
        {c.perhaps && <span className="soft"> Perhaps: <Name plain most={600}>{c.perhaps}</Name></span>}
      </p>
      <Lines list={c.missing} />
      {c.grants?.length ? <Grants list={c.grants} /> : null}
    </div>
  );
}

function Review({ of: r }: { of: Schemas['VerdictReviewLine'] }) {
  return (
    <div className={css.stack}>
      <p><Name most={80}>{r.kind}</Name> of {r.user ? <Who subject={r.user} most={400} /> : '(nobody)'}{r.asked && <>: <Name most={600}>{r.asked}</Name></>}</p>
      <p><Outcome of={r.outcome} /> recorded <Decision of={r.recorded} />, replayed <Decision of={r.replayed} /></p>
      {r.reason && <p className="soft"><Name plain most={1000}>{r.reason}</Name></p>}
      {r.cause && <p><Name plain most={1500}>{r.cause}</Name></p>}
    </div>
  );
}
