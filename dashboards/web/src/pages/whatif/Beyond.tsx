import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Empty, Grid } from '../../kit/Card';
import { Name } from '../../kit/Name';
import { ChangedRules, Person, userOf } from '../../kit/Rule';
import { Tag } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import { clean, count, plural, sentence } from '../../kit/words';
import type { Drafted } from './words';
import css from './whatif.module.css';

/** What is shown at once: subjects, rules of each, paths. */
const MOST = { subjects: 8, rules: 6, paths: 10 };

/** Beyond shows what no request tells: what becomes possible, ways to cluster administrator, and what could not be known. */
export function Beyond({ of: a }: { of: Drafted }) {
  return (
    <>
      <Grid columns="minmax(0, 1fr) minmax(0, 1fr)">
        <Possible of={a} />
        <Ways of={a.escalation} />
      </Grid>
      <Notes of={a} />
    </>
  );
}

function Possible({ of: a }: { of: Drafted }) {
  const { to } = useLinks();
  const beyond = a.possible.slice(MOST.subjects);
  const one = (s: Drafted['possible'][number], i: number) => (
    <li key={i}>
      <p className={css.subject}><Person of={s} /></p>
      <ChangedRules scopes={s.scopes} most={MOST.rules} more={(n) => <a href={to('/access', { subject: s.kind === 'Group' ? `group:${s.name}` : userOf(s) })}>and {count(n)} more rules; what it can do now</a>} />
    </li>
  );
  return (
    <Card title="What becomes possible" note="and impossible, whether or not anybody asked for it">
      {a.possible.length ? (
        <>
          <ul className={css.subjects}>{a.possible.slice(0, MOST.subjects).map(one)}</ul>
          {beyond.length > 0 && <details><summary>{plural(beyond.length + a.morePossible, 'more subject')}</summary><ul className={css.subjects}>{beyond.map(one)}</ul></details>}
        </>
      ) : <Empty>Everybody could do what they can do now.</Empty>}
    </Card>
  );
}

function Ways({ of: e }: { of: Schemas['EscalationChange'] }) {
  return (
    <Card title="Ways to cluster administrator" note="of those who have one only then, or only now">
      {e.openedCount + e.closedCount === 0 ? <Empty>It opens none, and closes none.</Empty> : (
        <div className={css.ways}>
          <Paths list={e.opened} all={e.openedCount} opens />
          <Paths list={e.closed} all={e.closedCount} />
        </div>
      )}
    </Card>
  );
}

function Paths({ list, all, opens }: { list: Schemas['Path'][]; all: number; opens?: boolean }) {
  if (!all) return null;
  const line = (p: Schemas['Path'], i: number) => <li key={i}><Name plain most={400}>{p.text}</Name></li>;
  const rest = list.slice(MOST.paths);
  return (
    <section>
      <h3><Tag tone={opens ? 'critical' : 'good'}>{opens ? '+ opened' : '− closed'}</Tag> {plural(all, 'subject')}</h3>
      <ul className={css.paths}>{list.slice(0, MOST.paths).map(line)}</ul>
      {all > MOST.paths && <details><summary>{count(all - MOST.paths)} more</summary><ul className={css.paths}>{rest.map(line)}</ul>{all > list.length && <p className="soft">{count(all - list.length)} are not listed.</p>}</details>}
    </section>
  );
}

function Notes({ of: a }: { of: Drafted }) {
  const unjudged = Object.entries(a.unjudged);
  return (
    <Card title="How far this can be known">
      <ul className={css.notes}>
        {a.notes.map((n, i) => <li key={i} className={css.warn}><Name plain most={600}>{sentence(n)}</Name></li>)}
        {unjudged.map(([what, n]) => <li key={what}>{plural(n, 'request')} of theirs had no certain verdict and {n === 1 ? 'is' : 'are'} in no class: {clean(what)}.</li>)}
        {a.unreadable > 0 && <li>{plural(a.unreadable, 'write')} of roles, bindings or certificates {a.unreadable === 1 ? 'has' : 'have'} no content on record: what they imply is not looked at.</li>}
        {Date.parse(a.first) > 0 && <li>Those whom it concerns asked from <Time at={a.first} /> to <Time at={a.last} />. What is done less often than that is in no answer.</li>}
        <li>Admission, and what controllers would do after the change, is not looked at.</li>
      </ul>
    </Card>
  );
}
