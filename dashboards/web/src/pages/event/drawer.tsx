import { useQuestion } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Question } from '../../kit/Card';
import { Drawer } from '../../kit/Drawer';
import { Name, Who } from '../../kit/Name';
import { useScope } from '../../kit/scope';
import { Decision, Outcome } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import css from './event.module.css';

/** EventDrawer shows the requests of an audit ID beside a page. */
export default function EventDrawer({ id = '' }: { id?: string }) {
  const { change } = useLinks();
  const { cluster } = useScope();
  const asks = useQuestion('why', { auditID: id, cluster });
  return (
    <Drawer title="Request" label="Request" onClose={() => change({ why: null, request: null })}>
      <Question asks={asks} lines={10} empty={(a) => !a.requests.length && <>No stored request carries the audit ID <Name>{id}</Name>.</>}>
        {(answer) => answer.requests.map((r) => (
          <dl key={r.request} className={css.facts}>
            <dt>Request</dt><dd><b>{r.verdict.verb}</b> <Name most={1000}>{r.verdict.requestURI}</Name></dd>
            <dt>Subject</dt><dd><Who subject={r.verdict.user} /></dd>
            <dt>Received</dt><dd><Time at={r.verdict.requestReceivedTimestamp} /></dd>
            <dt>Decision</dt><dd><Decision of={r.verdict.recorded} /></dd>
            <dt>Replay</dt><dd><Decision of={r.verdict.replayed} /></dd>
            <dt>Verdict</dt><dd><Outcome of={r.verdict.outcome} /></dd>
          </dl>
        ))}
      </Question>
    </Drawer>
  );
}
