import { useLinks } from '../../kit/address';
import { Figures, type Figure } from '../../kit/Figures';
import { Name, Who } from '../../kit/Name';
import { useScope } from '../../kit/scope';
import { Time } from '../../kit/Time';
import { clean, count, plural } from '../../kit/words';
import { CLASSES, latestOf, type Class, type Drafted } from './words';
import css from './whatif.module.css';

/** Summary says it in words, the worst first, and counts it by class. */
export function Summary({ of: a }: { of: Drafted }) {
  const { here } = useLinks();
  const { range } = useScope();
  const changing = CLASSES.filter((c) => a.summary[c.count] > 0);
  const nobody = a.summary.unchanged === 0 && !changing.length;
  return (
    <div className={css.summary}>
      <div role="status"><ul className={css.said}>
        {a.summary.revoked === 0 && (
          <li data-tone="good">
            <b>{nobody ? 'Nobody whom it concerns asked for anything' : 'Nothing that was used would be refused'}</b>
            {nobody && ' in this time: what it would break is not known.'}
            {nobody && range.name !== 'all' && <> <a href={here({ range: null, from: null, to: null })}>Ask everything stored</a></>}
          </li>
        )}
        {changing.map((c) => <Said key={c.id} of={a} kind={c} />)}
        {a.escalation.openedCount > 0 && <li data-tone="bad"><b>{plural(a.escalation.openedCount, 'subject')} could become cluster administrator</b> and cannot now.</li>}
        {a.summary.unchanged > 0 && <li className="soft">{plural(a.summary.unchanged, 'access', 'accesses')} of those whom it concerns would stay as they are.</li>}
      </ul></div>
      <Figures list={[...CLASSES.filter((c) => ALWAYS.includes(c.id) || a.summary[c.count] > 0).map((c) => figureOf(a, c, here({ class: c.id, rows: null }))), {
        label: 'Unchanged', value: count(a.summary.unchanged), note: plural(a.requests.unchanged, 'request'),
      }]} />
      <Changes list={a.changes} />
    </div>
  );
}

/** Changes lists what the draft does to objects, a few at once. */
function Changes({ list }: { list: Drafted['changes'] }) {
  const some = (of: Drafted['changes']) => (
    <ul className={css.changes} aria-label="What it does to the policy">
      {of.map((c, i) => <li key={i}><b>{clean(c.what)}</b> <Name most={160}>{c.object}</Name>{c.file && <span className="soft"> <Name most={60} plain>{c.file}</Name>:{c.line}</span>}</li>)}
    </ul>
  );
  if (!list.length) return null;
  return <div>{some(list.slice(0, MOST))}{list.length > MOST && <details><summary>{plural(list.length - MOST, 'more object')}</summary>{some(list.slice(MOST))}</details>}</div>;
}

/** Objects that are shown at once. */
const MOST = 12;

/** ALWAYS are the classes whose figure is there when it is nothing, too. */
const ALWAYS = ['REVOKED', 'GAINED'];

function figureOf(a: Drafted, c: Class, href: string): Figure {
  const latest = latestOf(a.accesses, c.id);
  const n = a.summary[c.count];
  return {
    label: c.title, value: count(n), tone: c.id === 'REVOKED' && n > 0 ? 'bad' : undefined,
    note: latest ? <>{plural(a.requests[c.count], 'request')}, last <Time at={latest.access.last} /></> : 'accesses',
    ...(n > 0 && { href }),
  };
}

/** Said is a line about a class: how many accesses, whose, and when last. */
function Said({ of: a, kind }: { of: Drafted; kind: Class }) {
  const { to } = useScope();
  const latest = latestOf(a.accesses, kind.id);
  return (
    <li data-tone={kind.id === 'REVOKED' ? 'bad' : undefined}>
      <b>{plural(a.summary[kind.count], 'access', 'accesses')} {a.summary[kind.count] === 1 ? kind.one : kind.text}</b>
      {latest && (
        <>
          : {plural(a.requests[kind.count], 'request')} of {plural(latest.subjects, 'subject')}, the last <Time at={latest.access.last} ago={to} /> by <Who subject={latest.access.subject} most={80} />
        </>
      )}
    </li>
  );
}
