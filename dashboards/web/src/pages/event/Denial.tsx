// What would have allowed a refused request.
import { useState } from 'react';
import type { Schemas } from '../../api/ask';
import { Question } from '../../kit/Card';
import { Text } from '../../kit/Copy';
import { Name } from '../../kit/Name';
import { Decision } from '../../kit/Tag';
import { sentence } from '../../kit/words';
import { Arrow, Box, kindOf, nameOf } from './Grants';
import { Fact, Lines, Part } from './Part';
import { useDenial, type Judged } from './queries';
import css from './event.module.css';

/** Denial tells who refused a request, and what would have allowed it. */
export function Denial({ request: r }: { request: Judged }) {
  const asks = useDenial(r);
  return (
    <Part title="Who refused it, and what would have allowed it" tone="bad">
      <Question asks={asks} lines={6} empty={(a) => !a.requests.some((x) => x.request === r.request) && 'Too many requests have this audit ID: this one is not explained.'}>
        {(a) => {
          const one = a.requests.find((x) => x.request === r.request);
          return one ? <Explained of={one} /> : null;
        }}
      </Question>
    </Part>
  );
}

function Explained({ of: d }: { of: Schemas['Denial'] }) {
  return (
    <div className={css.stack}>
      <p><b>Refused:</b> <Name plain most={1500}>{sentence(d.text)}</Name></p>
      {(d.checks ?? []).map((c, i) => (
        <div key={i} className={css.stack}>
          <p><span className="soft">The check that refused it:</span> <Name most={80}>{c.check}</Name>: may <Name most={200}>{c.user}</Name> <Name most={600}>{c.asked}</Name>? <Decision of={c.replayed} /></p>
          <Lines list={c.missing} />
          {c.nearest && <Nearest miss={c.nearest} />}
        </div>
      ))}
      {!d.checks?.length && (d.chain ?? []).filter((s) => s.answer !== 'allow' && s.nearest).map((s, i) => <Nearest key={i} miss={s.nearest as Schemas['NearestMiss']} />)}
      {d.missing?.length > 0 && <div><h3>Not known, and could change the answer</h3><Lines list={d.missing} /></div>}
      {d.chain?.length > 0 && (
        <div>
          <h3>What each authorizer would have needed</h3>
          <dl className={css.facts}>
            {d.chain.map((s, i) => <Fact key={i} title={s.authorizer}><Name plain most={60}>{s.answer}</Name>{[s.text, ...(s.almost ?? [])].filter(Boolean).map((t, j) => <span key={j} className="soft"> · <Name plain most={1000}>{t}</Name></span>)}</Fact>)}
          </dl>
        </div>
      )}
    </div>
  );
}

function Nearest({ miss: n }: { miss: Schemas['NearestMiss'] }) {
  return (
    <>
      {n.almost?.length > 0 && (
        <div>
          <h3>Nearest misses: rules that lack one thing</h3>
          <ol className={css.grants}>
            {n.almost.map((g, i) => (
              <li key={i}>
                <Box label={kindOf(g.subject)}>{nameOf(g.subject)}</Box><Arrow>bound by</Arrow>
                <Box label={kindOf(g.binding)}>{nameOf(g.binding)}</Box><Arrow>to</Arrow>
                <Box label={`${kindOf(g.role)}, rule ${g.rule}`}>{nameOf(g.role)}</Box>
                <b className={css.lacks}>but for the <Name plain most={40}>{g.lacks}</Name></b>
              </li>
            ))}
          </ol>
        </div>
      )}
      <div>
        <h3>The narrowest rule that allows it</h3>
        <Text label="The narrowest rule that allows it">{written(n.rule)}</Text>
      </div>
      {n.roles?.length > 0 && <Offers title="Roles that allow it, the narrowest first" list={n.roles.map((o) => o.role)} />}
      {n.bindings?.length > 0 && <Offers title="Bindings that grant it to others" list={n.bindings.map((o) => `${o.binding ?? ''} → ${o.role}`)} />}
    </>
  );
}

/** Offers are a few of several. */
function Offers({ title, list }: { title: string; list: string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? list : list.slice(0, list.length > 5 ? 4 : 5);
  return (
    <div>
      <h3>{title}</h3>
      <ul className={css.lines}>{shown.map((s, i) => <li key={i}><Name most={400}>{s}</Name></li>)}</ul>
      {list.length > 5 && <button type="button" className={css.more} aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Fewer' : `All ${list.length}`}</button>}
    </div>
  );
}

/** written writes a rule as the flow form of YAML, which is JSON. */
function written(r: Schemas['V1PolicyRule']): string {
  return (['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs', 'verbs'] as const).filter((k) => r?.[k]?.length).map((k) => `${k}: ${JSON.stringify(r[k])}`).join('\n');
}
