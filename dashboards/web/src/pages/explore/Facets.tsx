import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Failed, Pending } from '../../kit/Card';
import { Name, Subject } from '../../kit/Name';
import { clean, count, DECISIONS, label, short } from '../../kit/words';
import { changesTo, COUNTED, KEYS, same, toggled, type Condition } from './conditions';
import { useFacets } from './queries';
import css from './explore.module.css';

/** USUAL are shown at once, FURTHER when they are asked for. */
const USUAL = ['decision', 'outcome', 'subject', 'namespace', 'verb', 'resource', 'code', 'userAgent'];
const FURTHER = COUNTED.filter((k) => !USUAL.includes(k));

/** Facets says which values the requests have, and how often. Of a column that is filtered by, what else there is stays to be chosen. */
export function Facets({ list }: { list: Condition[] }) {
  const { params, here } = useLinks();
  const more = params.get('facets') === 'all';
  return (
    <>
      {USUAL.map((k) => <Facet key={k} of={k} list={list} among={USUAL} />)}
      {more && FURTHER.map((k) => <Facet key={k} of={k} list={list} among={FURTHER} />)}
      <p><a className="button plain" href={here({ facets: more ? null : 'all' })}>{more ? 'Fewer columns' : `${FURTHER.length} further columns`}</a></p>
    </>
  );
}

function Facet({ of: key, list, among }: { of: string; list: Condition[]; among: string[] }) {
  // Columns that are not filtered by are asked about in one question, the same for all of them.
  const filtered = list.some((c) => c.key === key);
  const asks = useFacets(filtered ? list.filter((c) => c.key !== key) : list, filtered ? [key] : among.filter((k) => !list.some((c) => c.key === k)));
  const facet = asks.data?.facets.find((f) => f.key === key);
  const empty = asks.data && !facet?.values.some((v) => v.value !== '');
  if (empty && !filtered) return null;
  return (
    <details className={css.facet} open={filtered || among === USUAL || undefined}>
      <summary>{KEYS[key]}</summary>
      {asks.error && !facet ? <Failed error={asks.error} again={() => void asks.refetch()} /> : !facet ? !asks.data && <Pending lines={3} /> : <Values of={facet} list={list} />}
    </details>
  );
}

function Values({ of: f, list }: { of: Schemas['Facet']; list: Condition[] }) {
  const { here } = useLinks();
  const chosen = list.filter((c) => c.key === f.key && c.sign === '=' && !f.values.some((v) => v.value === c.value));
  const values = [...f.values, ...chosen.map((c) => ({ value: c.value, requests: 0 }))];
  const most = Math.max(1, ...values.map((v) => v.requests));
  return (
    <ul className={css.values}>
      {values.map((v) => {
        const is: Condition = { key: f.key, sign: '=', value: v.value };
        const not: Condition = { ...is, sign: '!=' };
        const on = list.some((c) => same(c, is));
        const off = list.some((c) => same(c, not));
        return (
          <li key={v.value} data-on={on || undefined} data-off={off || undefined}>
            <a className={css.value} href={here(changesTo(toggled(list, is)))} aria-current={on || undefined} title={clean(short(v.value, 400))}>
              <i style={{ width: `${(100 * v.requests) / most}%` }} /><span><Worded of={f.key} value={v.value} /></span>{' '}<b>{count(v.requests)}</b>
            </a>
            <a className={css.not} href={here(changesTo(toggled(list, not)))} aria-current={off || undefined} aria-label={`Without ${clean(short(v.value, 60)) || '(none)'}`}><span aria-hidden>≠</span></a>
          </li>
        );
      })}
      {f.more && <li className={css.more}>and others: filter to see them</li>}
    </ul>
  );
}

/** Worded shows a value as the rest of the page does. */
function Worded({ of: key, value }: { of: string; value: string }) {
  if (value === '') return <span className="soft">(none)</span>;
  if (key === 'subject' || key === 'user' || key === 'impersonated') return <Subject>{value}</Subject>;
  if (key === 'decision' || key === 'replayed') return <>{DECISIONS[value] ?? <Name>{value}</Name>}</>;
  if (key === 'outcome') return <Name plain>{label(value)}</Name>;
  return <Name most={80}>{value}</Name>;
}
