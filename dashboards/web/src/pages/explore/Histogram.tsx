import { useMemo } from 'react';
import type { Answer } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Question } from '../../kit/Card';
import { Chart, type Series } from '../../kit/Chart';
import { Time } from '../../kit/Time';
import { accountOf } from '../../kit/request';
import { useScope } from '../../kit/scope';
import { clean, count, DECISIONS, label, short, table } from '../../kit/words';
import { COUNTED, KEYS, type Condition } from './conditions';
import { useHistogram } from './queries';
import css from './explore.module.css';

/** Values that have a colour of their own, in the order in which they are stacked. */
const TONES: Record<string, string> = table({ allow: 'allow', forbid: 'forbid', none: 'none', match: 'match', drift: 'drift', ambiguous: 'ambiguous', indeterminate: 'indeterminate', not_judged: 'not_judged' });

/** Histogram shows when the requests were made, split by any column. */
export function Histogram({ list }: { list: Condition[] }) {
  const { params, change } = useLinks();
  const split = params.get('split') ?? 'decision';
  const asks = useHistogram(list, split === '-' ? '' : split);
  const total = asks.data?.steps.reduce((sum, s) => sum + s.others + s.counts.reduce((a, b) => a + b, 0), 0);
  return (
    <Card title="Over time" note={<Note answer={asks.data} total={total} />} actions={
      <label className={css.split}>
        <span className="soft">Split by</span>
        <select value={split} onChange={(e) => change({ split: e.target.value === 'decision' ? null : e.target.value }, 'replace')}>
          <option value="-">nothing</option>
          {split !== '-' && !COUNTED.includes(split) && <option value={split}>{clean(short(split, 40))}</option>}
          {COUNTED.map((k) => <option key={k} value={k}>{KEYS[k]}</option>)}
        </select>
      </label>
    }>
      <Question asks={asks} lines={6} empty={() => !total && 'No request to count in this range.'}>
        {(a) => <Bars answer={a} />}
      </Question>
    </Card>
  );
}

function Note({ answer: a, total }: { answer: Answer<'histogram'> | undefined; total: number | undefined }) {
  if (!a || total === undefined) return null;
  return <>{count(total)} {total === 1 ? 'request' : 'requests'}{a.whole ? '' : <>, counted from <Time at={a.countedFrom} />: the range has older ones</>} · drag to look at a part</>;
}

function Bars({ answer: a }: { answer: Answer<'histogram'> }) {
  const { change } = useLinks();
  const { from, to } = useScope();
  const times = useMemo(() => a.steps.map((s) => s.t), [a]);
  const series = useMemo(() => seriesOf(a), [a]);
  return (
    <Chart label={`Requests over time${a.split ? `, by ${KEYS[a.split] ?? a.split}` : ''}`} from={times[0] ?? from} to={to} seconds={a.stepSeconds || 1} times={times} series={series} height={132}
      onPick={(f, t) => change({ from: f, to: t, range: null })} />
  );
}

/** seriesOf makes the parts of the bars: decisions and outcomes in their order and colours, others by number. */
export function seriesOf(a: Answer<'histogram'>): Series[] {
  const own = ['decision', 'replayed', 'outcome'].includes(a.split);
  const order = Object.keys(TONES);
  const list = a.values.map((value, i) => ({ value, i }));
  if (own) list.sort((x, y) => order.indexOf(x.value) - order.indexOf(y.value));
  const series = list.map(({ value, i }, at): Series => ({ label: worded(a.split, value), tone: (own && TONES[value]) || `c${(at % 8) + 1}`, values: a.steps.map((s) => s.counts[i] ?? 0) }));
  const others = a.steps.map((s) => s.others);
  if (!a.split) return [{ label: 'requests', tone: 'allow', values: others }];
  return others.some(Boolean) ? [...series, { label: 'others', tone: 'none', values: others }] : series;
}

function worded(split: string, value: string): string {
  if (value === '') return '(none)';
  if (split === 'decision' || split === 'replayed') return DECISIONS[value] ?? value;
  if (split === 'outcome') return label(value);
  const account = accountOf(value);
  return clean(short(account ? `sa/${account}` : value, 60));
}
