import type { Answer } from '../../api/ask';
import type { Asked } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Card, Empty, Question } from '../../kit/Card';
import { Text, fileName } from '../../kit/Copy';
import { Name, Names } from '../../kit/Name';
import { Tag } from '../../kit/Tag';
import { lasting, Time } from '../../kit/Time';
import { clean, count, percent, plural } from '../../kit/words';
import css from './subject.module.css';

type One = Answer<'suggest'>['suggestions'][number];

/** A recording that is shorter says little of what happens once a week. */
const WEEK = 7 * 86_400;

const TABS: [id: 'apply' | 'remove' | 'rollback', label: string, told: string][] = [
  ['apply', 'Apply', 'Objects to apply first; they take nothing away. The removals are at the end, as comments.'],
  ['remove', 'Remove', 'Commands to run once the objects are applied: only they take something away.'],
  ['rollback', 'Roll back', 'What was there before: apply this to go back.'],
];

/** Suggestion shows the least it needs, the proof, and the change as the server wrote it. */
export function Suggestion({ asks }: { asks: Asked<Answer<'suggest'>> }) {
  return (
    <Card title="The least it needs" note="a change that leaves it exactly what it used, and the proof">
      {asks.error && asks.error.status !== 0 && asks.error.status < 500 ? <Empty>{clean(asks.error.message)}</Empty> : (
        <Question asks={asks} lines={8} empty={(a) => !a.suggestions.length && 'There is nothing to suggest: RBAC decided nothing about it in this range.'}>
          {(a) => a.suggestions[0] && <Change one={a.suggestions[0]} texts={a.texts} />}
        </Question>
      )}
    </Card>
  );
}

function Change({ one: s, texts }: { one: One; texts: Answer<'suggest'>['texts'] }) {
  const { params, here } = useLinks();
  const p = s.proof;
  const tab = TABS.find(([id]) => id === params.get('text')) ?? TABS[0];
  const length = (Date.parse(s.window.to) - Date.parse(s.window.from)) / 1000;
  const undone = s.keeps.filter((k) => k.undoes?.length);
  return (
    <div className={css.suggestion}>
      {length < WEEK && <p className={css.warn}><b>It rests on {lasting(Math.max(1, length))}.</b> What the subject does once a week or once a month is not in it and would be refused.</p>}
      {!s.seen && <p className={css.warn}><b>It made no request in this range.</b> The recording does not show whether it is needed at all.</p>}
      {s.system && <p className={css.warn}><b>This is a subject of Kubernetes itself.</b> Its roles come back when the apiserver starts; changing them can break the cluster.</p>}
      {!p.holds && <p className={css.warn} role="alert"><b>The proof does not hold.</b> Do not apply this as it is.</p>}
      <dl className={css.facts}>
        <dt>Excess</dt>
        <dd>{s.excess.before ? <><b>{count(s.excess.before)}</b> now, <b>{count(s.excess.after)}</b> afterwards: {percent(s.excess.before - s.excess.after, s.excess.before)} of what its own bindings grant and it never used, weighed by danger, is removed.</> : 'Its own bindings grant nothing that it never used.'}{s.excess.kept > 0 && ` ${count(s.excess.kept)} more is granted by its groups and stays.`}</dd>
        <dt>Change</dt>
        <dd>{s.size.apply + s.size.remove ? `${plural(s.size.apply, 'object')} to apply, ${plural(s.size.remove, 'binding')} to remove it from.` : 'None: none of its own bindings can be removed.'}</dd>
        <dt>Proof</dt>
        <dd>
          <Tag tone={p.holds ? 'good' : 'bad'}>{p.holds ? 'holds' : 'fails'}</Tag>{' '}
          {plural(p.requests, 'allowed request')} asked again, {count(p.refused)} of them refused; {plural(p.refusals, 'refusal')} asked again, {count(p.newlyAllowed)} of them newly allowed.
          {(p.failures?.length ?? 0) > 0 && <ul className={css.list}>{p.failures?.slice(0, 8).map((f, i) => <li key={i}><Name plain most={400}>{f}</Name></li>)}</ul>}
        </dd>
        <dt>Recorded</dt>
        <dd><Time at={s.window.from} /> – <Time at={s.window.to} />: {plural(s.window.requests, 'request')}, {percent(s.window.judged, s.window.requests)} of them judged.</dd>
        {s.gaps.length > 0 && <><dt>Not known</dt><dd><ul className={css.list}>{s.gaps.map((g, i) => <li key={i}><Name plain most={500}>{g}</Name></li>)}</ul></dd></>}
        {s.keeps.length > 0 && (
          <><dt>Stays</dt><dd>{plural(s.keeps.length, 'grant')} of its groups{undone.length > 0 && <>; {count(undone.length)} of them still {undone.length === 1 ? 'gives' : 'give'} some of what this takes away: <ul className={css.list}>{undone.slice(0, 5).map((k) => <li key={k.binding + k.group}><Name>{k.binding}</Name> to group <Name>{k.group}</Name>: <Names list={k.undoes} most={6} /></li>)}</ul></>}</dd></>
        )}
      </dl>
      {texts && s.size.apply + s.size.remove > 0 && tab && (
        <>
          <div role="group" aria-label="The change as text" className={css.toggle}>
            {TABS.map(([id, label]) => <a key={id} className="button" href={here({ text: id === 'apply' ? null : id })} aria-current={id === tab[0] || undefined}>{label}</a>)}
          </div>
          <p className="soft">{tab[2]}</p>
          <Text label={tab[1]} file={fileName('retrial', s.subject, tab[0]) + (tab[0] === 'remove' ? '.sh' : '.yaml')}>{texts[tab[0]] || '# nothing to remove\n'}</Text>
        </>
      )}
    </div>
  );
}
