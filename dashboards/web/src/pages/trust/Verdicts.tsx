import { useEffect, useRef } from 'react';
import type { Answer, Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { Text } from '../../kit/Copy';
import { DataTable, type Column } from '../../kit/DataTable';
import { Name } from '../../kit/Name';
import { Decision, Outcome } from '../../kit/Tag';
import { clean, count, label, OUTCOMES, percent, plural, sentence } from '../../kit/words';
import { useMeanings, useOverview } from './queries';
import css from './trust.module.css';

/** Coverage shows how much could be decided again, and what would help to decide more. */
export function Coverage() {
  const { to } = useLinks();
  const asks = useOverview();
  return (
    <Card title="Verdict coverage" note="how much could be decided again">
      <Question asks={asks} lines={7} empty={(a) => !a.totals.requests && 'There are no requests in this range.'}>
        {({ totals, next }) => {
          const rows = OUTCOMES.map((outcome) => ({ outcome, requests: totals[outcome] }));
          const all = rows.reduce((n, r) => n + r.requests, 0);
          const columns: Column<(typeof rows)[0]>[] = [
            { id: 'outcome', head: 'Verdict', width: 'minmax(0, 1fr)', cell: (r) => <><i className={css.dot} style={{ background: `var(--${r.outcome})` }} />{label(r.outcome)}</> },
            { id: 'requests', head: 'Requests', width: '90px', number: true, cell: (r) => count(r.requests) },
            { id: 'share', head: 'Share', width: '84px', number: true, cell: (r) => percent(r.requests, all) },
          ];
          return (
            <>
              <div className={css.stack} aria-hidden>{rows.filter((r) => r.requests).map((r) => <i key={r.outcome} style={{ flexGrow: r.requests, background: `var(--${r.outcome})` }} />)}</div>
              <DataTable label="Verdicts" columns={columns} rows={rows} rowKey={(r) => r.outcome} href={(r) => to('/explore', { outcome: r.outcome })} />
              {next ? <Advice next={next} /> : <p className={css.settled}><b>Nothing is missing.</b> Every request with a recorded decision was decided again.</p>}
            </>
          );
        }}
      </Question>
    </Card>
  );
}

function Advice({ next }: { next: Schemas['Advice'] }) {
  return (
    <div className={css.advice}>
      <p><b>{next.command ? 'Supply next:' : 'Still open:'}</b> {clean(next.title)} <span className="soft">({plural(next.requests, 'request')})</span></p>
      <p>{clean(next.text)}</p>
      {(next.command || next.missing?.length > 0) && (
        <details>
          <summary data-row>{next.command ? 'How, and what exactly' : 'What exactly'}</summary>
          {next.command && <Text label="Command">{next.command}</Text>}
          <ul className={css.list}>{next.missing?.map((m) => <li key={m.what}><Name most={400}>{m.what}</Name> <span className="soft">{count(m.requests)}</span></li>)}</ul>
        </details>
      )}
    </div>
  );
}

const SIDES = ['allow', 'forbid', 'none'];

/** Decisions sets what was recorded against what was replayed. */
export function Decisions() {
  const asks = useOverview();
  return (
    <Card title="Decisions" note="the apiserver’s against the replay’s">
      <Question asks={asks} lines={4} empty={(a) => !a.decisions?.length && 'There are no requests in this range.'}>
        {(a) => (
          <table className={css.matrix}>
            <thead><tr><td />{SIDES.map((s) => <th key={s} scope="col"><small>Replay</small><Decision of={s} /></th>)}</tr></thead>
            <tbody>
              {SIDES.map((recorded) => (
                <tr key={recorded}>
                  <th scope="row"><small>Apiserver</small><Decision of={recorded} /></th>
                  {SIDES.map((replayed) => <Cell key={replayed} answer={a} recorded={recorded} replayed={replayed} />)}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Question>
    </Card>
  );
}

/** How a pair of decisions is called, for those who do not see its colour. */
const TOLD = {
  zero: 'no request',
  same: 'both say the same',
  differs: 'they differ: drift, or ambiguous where the policy was changing at that time',
  raced: 'they differ, and each time the policy was just changing: ambiguous, not drift',
  open: 'one of them alone decided: indeterminate, or not judged',
};

function Cell({ answer: a, recorded, replayed }: { answer: Answer<'overview'>; recorded: string; replayed: string }) {
  const n = a.decisions.filter((d) => d.recorded === recorded && d.replayed === replayed).reduce((sum, d) => sum + d.requests, 0);
  const kind = !n ? 'zero' : recorded === replayed ? 'same' : recorded === 'none' || replayed === 'none' ? 'open' : a.totals.drift ? 'differs' : 'raced';
  return <td data-kind={kind} title={sentence(TOLD[kind])}>{count(n)}<span className="unseen">, {TOLD[kind]}</span></td>;
}

/** Classes lists drift and open questions by class. */
export function Classes() {
  const { to } = useLinks();
  const asks = useOverview();
  const rank = (c: Schemas['ClassCount']) => ['drift', 'ambiguous', 'indeterminate', 'not_judged'].indexOf(c.outcome);
  const columns: Column<Schemas['ClassCount']>[] = [
    { id: 'class', head: 'Class', width: 'minmax(0, 1fr)', leads: true, wrap: true, cell: (c) => <Name>{c.class}</Name> },
    { id: 'text', head: 'Meaning', width: 'minmax(0, 2fr)', wrap: true, cell: (c) => <span className="soft">{sentence(c.text)}</span> },
    { id: 'outcome', head: 'Verdict', width: '112px', cell: (c) => <Outcome of={c.outcome} /> },
    { id: 'count', head: 'Requests', width: '80px', number: true, cell: (c) => count(c.count) },
  ];
  return (
    <Card title="Drift and open questions, by class" flush>
      <Question asks={asks} lines={5} empty={(a) => !a.classes.length && (a.totals.match ? 'None: every request in this range is a match.' : 'There are no requests in this range.')}>
        {(a) => (
          <DataTable label="Classes" columns={columns} rows={[...a.classes].sort((x, y) => rank(x) - rank(y) || y.count - x.count)} rowKey={(c) => c.class}
            href={(c) => to('/explore', { class: c.class, outcome: c.outcome })} />
        )}
      </Question>
    </Card>
  );
}

/** Meanings says what the verdicts mean, in the words that the commands and documents use. */
export function Meanings() {
  const { params } = useLinks();
  const asks = useMeanings();
  const here = useRef<HTMLDivElement>(null);
  const wanted = params.get('show') === 'verdicts' && asks.isSuccess;
  useEffect(() => {
    if (wanted) here.current?.scrollIntoView({ block: 'start' });
  }, [wanted]);
  return (
    <div ref={here} className={css.target}>
      <Card title="What the verdicts mean">
        <div className={css.prose}>
          <p>Kubernetes records who asked the apiserver for what, and whether it was allowed. Retrial takes each of these requests and decides it a second time, from roles and bindings as they were at that time, without looking at the recorded decision. Then it compares. The result is the request’s verdict.</p>
          <p>A grant is one path that makes a request possible: a subject, a binding that names it, and the rule of a role that allows it. The apiserver names one of them; Retrial lists all, because taking one away changes nothing as long as another is left.</p>
        </div>
        <Question asks={asks} lines={12}>
          {(a) => a.outcomes.map((o) => {
            const classes = a.classes.filter((c) => c.outcome === o.outcome);
            return (
              <section key={o.outcome} className={css.meaning}>
                <h3><Outcome of={o.outcome} /></h3>
                <div>
                  <p>{o.text}</p>
                  {classes.length > 0 && (
                    <details>
                      <summary data-row>{plural(classes.length, 'class', 'classes')}</summary>
                      <dl className={css.classes}>{classes.map((c) => <div key={c.class}><dt><Name>{c.class}</Name></dt><dd>{sentence(c.text)}</dd></div>)}</dl>
                    </details>
                  )}
                </div>
              </section>
            );
          })}
        </Question>
      </Card>
    </div>
  );
}
