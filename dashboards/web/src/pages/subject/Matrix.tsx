import { useMemo } from 'react';
import type { Answer } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Empty } from '../../kit/Card';
import { Name, Names } from '../../kit/Name';
import { filtersOf, partsOf } from '../../kit/request';
import { count, plural } from '../../kit/words';
import { matrixOf, totals, VERBS, type Cell, type Line, type State } from './matrix';
import css from './subject.module.css';

/** Rows that are shown at once. */
const FEW = 60;

const SHOW: [state: State, label: string][] = [['used', 'Used'], ['unused', 'Never used'], ['refused', 'Refused']];

/** Matrix shows what a subject could and did, resource by verb. What it did leads to its requests. */
export function Matrix({ name, rights, doings }: { name: string; rights: Answer<'can'> | undefined; doings: Answer<'subject'> | undefined }) {
  const { params, here, to } = useLinks();
  const all = useMemo(() => matrixOf(rights, doings), [rights, doings]);
  const sums = useMemo(() => totals(all), [all]);
  const show = params.get('show');
  const chosen = all.filter((l) => !show || has(l, show as State));
  const list = params.get('rows') === 'all' ? chosen : chosen.slice(0, FEW);
  const requests = (l: Line, verb: string, c: Cell) => {
    const [what = ''] = l.what;
    if (l.what.length !== 1 || what.includes('*') || verb === '*' || !(c.used + c.refused)) return undefined;
    const only = (names: string[]) => (names.length === 1 ? (names[0] ?? '') : '');
    return to('/explore', filtersOf({ ...partsOf(what), subject: name, verb, namespace: only(l.where), name: only(l.names) }));
  };
  const others = list.some((l) => [...l.cells.keys()].some((v) => !VERBS.includes(v)));
  return (
    <>
      <div className={css.keyline}>
        <div role="group" aria-label="Show" className={css.toggle}>
          <a className="button" href={here({ show: null, rows: null })} aria-current={show ? undefined : true}>All</a>
          {SHOW.map(([s, text]) => <a key={s} className="button" href={here({ show: s, rows: null })} aria-current={show === s || undefined}>{text} <span className="soft">{count(all.filter((l) => has(l, s)).length)}</span></a>)}
        </div>
        <p className={css.legend}>
          <span><Mark of={{ granted: true, used: 1, refused: 0 }} bare /> used</span>
          <span><Mark of={{ granted: true, used: 0, refused: 0 }} bare /> granted, never used</span>
          <span><Mark of={{ granted: false, used: 0, refused: 1 }} bare /> refused</span>
          <span><Mark of={{ granted: false, used: 1, refused: 0 }} bare /> used, not granted now</span>
        </p>
      </div>
      {rights?.superuser && <p className={css.warn}><b>It may do everything.</b> Members of system:masters are never asked for a grant.</p>}
      {!list.length ? <Empty>{all.length ? 'Nothing of it.' : 'No rule applies to it, and it made no request in this time.'}</Empty> : (
        <table className={css.matrix}>
          <caption className="unseen">What it may do and did: {plural(sums.granted, 'right')}, {count(sums.used)} of them used</caption>
          <thead>
            <tr>
              <th scope="col">Resource or path</th><th scope="col">Where</th>
              {VERBS.map((v) => <th key={v} scope="col" className={css.verb}>{v === 'deletecollection' ? <abbr title="deletecollection">delete all</abbr> : v}</th>)}
              {others && <th scope="col">Other verbs</th>}
            </tr>
          </thead>
          <tbody>
            {list.map((l) => {
              const star = l.cells.get('*');
              const rest = [...l.cells].filter(([v]) => !VERBS.includes(v));
              return (
                <tr key={l.key} data-state={l.state}>
                  <th scope="row"><What line={l} to={to} /></th>
                  <td className={css.where}>{l.where[0] === '' ? 'everywhere' : <><Names list={l.where} most={3} />{l.where.length > 1 && <span className="soft"> ({l.where.length})</span>}</>}</td>
                  {VERBS.map((v) => {
                    const c = l.cells.get(v) ?? (star && { granted: true, used: 0, refused: 0 });
                    return <td key={v} className={css.cell} data-verb={c && v}>{c && <Mark of={c} href={requests(l, v, c)} />}</td>;
                  })}
                  {others && <td className={css.others}>{rest.map(([v, c]) => <span key={v}><Mark of={c} href={requests(l, v, c)} /> <Name most={40}>{v === '*' ? 'every verb (*)' : v}</Name></span>)}</td>}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {chosen.length > list.length && <p className={css.more}><a className="button" href={here({ rows: 'all' })}>Show all {count(chosen.length)} rows</a></p>}
      <ul className={css.notes}>
        {doings?.more && <li>Only the {count(doings.usage.length)} most frequent requests are counted here.</li>}
        {!!doings?.folded && <li>{plural(doings.folded, 'request')} exceed what is counted by name in a day: (other).</li>}
        {!!doings?.otherGroups && (
          <li>{plural(doings.otherGroups, 'request')} came with further sets of groups, more than are told apart in a day.</li>
        )}
        {!!doings?.untold && (
          <li>
            {plural(doings.untold, 'request')} of the cluster are of subjects that are not told apart, more than are counted in a day: some may
            be of this one.
          </li>
        )}
      </ul>
    </>
  );
}

function has(l: Line, state: State): boolean {
  const cells = [...l.cells.values()];
  return state === 'used' ? cells.some((c) => c.used) : state === 'refused' ? cells.some((c) => c.refused) : cells.some((c) => c.granted && !c.used);
}

function What({ line, to }: { line: Line; to: (path: string, changes: Record<string, string | null>) => string }) {
  const first = line.what[0] ?? '';
  const verb = [...line.cells.keys()].find((v) => v !== '*') ?? 'get';
  const asks = first.includes('*') ? null : to('/access', first.startsWith('/') ? { verb, path: first } : { verb, resource: first, namespace: line.where[0] ?? '' });
  return (
    <>
      {asks && line.what.length === 1 ? <a className={css.ask} href={asks} data-row title="Who else can"><Name most={120}>{first}</Name></a> : <Names list={line.what.map((w) => (w === '*.*' ? 'everything (*.*)' : w))} most={5} />}
      {line.names.length > 0 && <span className="soft"> only <Names list={line.names} most={3} /></span>}
    </>
  );
}

/** Mark shows a cell by its shape, and says it in words to screen readers. It leads to the requests that it counts. */
function Mark({ of: c, bare, href }: { of: Cell; bare?: boolean; href?: string | undefined }) {
  const kind = c.used ? (c.granted ? 'used' : 'gone') : c.granted ? 'unused' : 'refused';
  const said = [c.used && (c.granted ? `used ${plural(c.used, 'time')}` : `used ${plural(c.used, 'time')}, not granted now`), c.granted && !c.used && 'granted, never used', c.refused && `refused ${plural(c.refused, 'time')}`].filter(Boolean).join('; ');
  const inside = (
    <>
      {!(kind === 'refused') && <i aria-hidden data-kind={kind} />}
      {c.used > 0 && !bare && <span aria-hidden className="num">{brief(c.used)}</span>}
      {c.refused > 0 && <><i aria-hidden data-kind="refused">✕</i>{!bare && <span aria-hidden className="num">{brief(c.refused)}</span>}</>}
      {!bare && <span className="unseen">{said}</span>}
    </>
  );
  if (href) return <a className={css.mark} href={href} title={`${said}: its requests`}>{inside}</a>;
  return <span className={css.mark} title={bare ? undefined : said}>{inside}</span>;
}

function brief(n: number): string {
  return n >= 1e6 ? `${Math.round(n / 1e5) / 10} M` : n >= 1e4 ? `${Math.round(n / 1e3)} k` : count(n);
}
