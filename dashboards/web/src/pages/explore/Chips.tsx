import { useLinks } from '../../kit/address';
import { Name } from '../../kit/Name';
import { clean, short } from '../../kit/words';
import { changesTo, KEYS, same, WORDS, type Condition, type Sign } from './conditions';
import css from './explore.module.css';

const OPPOSITE: Record<Sign, Sign> = { '=': '!=', '!=': '=', '^=': '!^=', '!^=': '^=' };

/** Chips are the conditions in force: each can be turned round, or removed. */
export function Chips({ list }: { list: Condition[] }) {
  const { here } = useLinks();
  if (!list.length) return null;
  return (
    <ul className={css.chips} aria-label="Filters in force">
      {list.map((c, i) => {
        const said = `${KEYS[c.key] ?? c.key} ${WORDS[c.sign]} ${clean(short(c.value, 60)) || '(none)'}`.trim();
        return (
          <li key={i} data-not={c.sign.startsWith('!') || undefined}>
            <span className="soft">{KEYS[c.key] ?? <Name most={40}>{c.key || 'not understood'}</Name>}</span>{' '}
            {c.key && <a className={css.sign} href={here(changesTo(list.map((x, j) => (j === i ? { ...c, sign: OPPOSITE[c.sign] } : x))))} aria-label={`Turn round: ${said}`}>{WORDS[c.sign]}</a>}{' '}
            <Name most={60}>{c.value || '(none)'}</Name>
            <a className={css.gone} href={here(changesTo(list.filter((x) => !same(x, c))))} aria-label={`Remove: ${said}`}><span aria-hidden>✕</span></a>
          </li>
        );
      })}
      <li className={css.clear}><a className="button plain" href={here(changesTo([]))}>Clear all</a></li>
    </ul>
  );
}
