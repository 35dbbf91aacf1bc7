import type { Answer, Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { Name, Request, Subject } from '../../kit/Name';
import { Outcome } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import { count, plural, sentence } from '../../kit/words';
import { useDrift } from './queries';
import css from './trust.module.css';

/** Groups that are shown at once. */
const FEW = 6;

/** Disagreements shows what does not match, put together by what the requests have in common, with what probably lies behind. */
export function Disagreements() {
  const asks = useDrift();
  return (
    <Card title="What does not match, by likely cause" note="drift, ambiguous and indeterminate requests, and what would settle them">
      <Question asks={asks} lines={6} empty={(a) => !a.groups.length && nothing(a)}>
        {(a) => (
          <>
            <Groups list={a.groups.slice(0, FEW)} />
            {a.groups.length > FEW && <details><summary data-row>{plural(a.groups.length - FEW, 'more group')}</summary><Groups list={a.groups.slice(FEW)} /></details>}
            {a.truncated && <p className="soft">There are more than fit into one answer: choose a shorter range.</p>}
          </>
        )}
      </Question>
    </Card>
  );
}

function nothing(a: Answer<'drift'>): string {
  if (!a.requests) return 'Nothing can be said: there are no requests in this range.';
  if (!a.judged) return `Nothing can be said: none of the ${plural(a.requests, 'request')} in this range could be compared.`;
  return a.judged === 1 ? 'Nothing: the one judged request in this range is a match.' : `Nothing: all ${plural(a.judged, 'judged request')} in this range are matches.`;
}

function Groups({ list }: { list: Schemas['DriftGroup'][] }) {
  const { to, here } = useLinks();
  return (
    <ul className={css.groups}>
      {list.map((g) => (
        <li key={[g.class, g.about, g.apiserver].join('\n')}>
          <div className={css.what}>
            <p><Outcome of={g.outcome} /> <a data-row href={to('/explore', { class: g.class, outcome: g.outcome })} title={sentence(g.text)}><Name most={100}>{g.class}</Name></a></p>
            {g.about && <p><Name most={300}>{g.about}</Name></p>}
            {g.apiserver && <p className="soft">apiserver <Name most={100}>{g.apiserver}</Name></p>}
            <p className="soft small"><b className={css.many}>{plural(g.count, 'request')}</b> of {plural(g.users, 'user')}, <Time at={g.first} /> – <Time at={g.last} /></p>
          </div>
          <div className={css.causes}>
            {g.likely.map((l, i) => (
              <div key={i}>
                <p><b><Name plain most={60}>{l.kind}</Name>:</b> <Name plain most={1000}>{l.why}</Name></p>
                <p className="soft">Settled by: <Name plain most={1000}>{l.give}</Name></p>
              </div>
            ))}
          </div>
          <ul className={css.examples} aria-label={`Earliest of ${count(g.count)}`}>
            {g.examples.map((x, i) => <li key={i}><a data-row href={here({ why: x.auditID, request: null })}><Subject most={40}>{x.subject}</Subject> <Request verb={x.verb} uri={x.requestURI} /></a></li>)}
          </ul>
        </li>
      ))}
    </ul>
  );
}
