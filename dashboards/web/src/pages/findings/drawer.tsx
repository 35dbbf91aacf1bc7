import { useConstant } from '../../api/questions';
import { useLinks } from '../../kit/address';
import { Question } from '../../kit/Card';
import { Drawer } from '../../kit/Drawer';
import { Name, Names, Who } from '../../kit/Name';
import { Severity } from '../../kit/Tag';
import { Time } from '../../kit/Time';
import { plural, sentence } from '../../kit/words';
import { useFinding, type Finding } from './queries';
import css from './findings.module.css';

/** FindingDrawer shows a finding beside a page: why its rule exists, and the requests that show it. */
export default function FindingDrawer({ id = '' }: { id?: string }) {
  const { change } = useLinks();
  const asks = useFinding(id);
  return (
    <Drawer title="Finding" label="Finding" onClose={() => change({ finding: null, since: null })}>
      <Question asks={asks} lines={10} empty={(a) => !a.findings.some((f) => f.id === id) && <>No finding of this cluster in this range has the ID <Name>{id}</Name>.</>}>
        {(a) => {
          const found = a.findings.find((f) => f.id === id);
          return found ? <One of={found} /> : null;
        }}
      </Question>
    </Drawer>
  );
}

function One({ of: f }: { of: Finding }) {
  const { here, to } = useLinks();
  const rule = useConstant('rules').data?.rules.find((r) => r.id === f.rule);
  const span = { range: null, from: f.first, to: new Date(Date.parse(f.last) + 1).toISOString() };
  return (
    <article className={css.finding}>
      <header>
        <p><Severity of={f.severity} /> <a href={to('/findings', { rule: f.rule })}><Name>{f.rule}</Name></a></p>
        <h2><Name plain>{f.title || f.rule}</Name></h2>
        {rule?.description && <p className="soft"><Name plain most={1500}>{sentence(rule.description.trim())}</Name></p>}
      </header>
      {f.text && <p><Name plain most={1000}>{f.text}</Name></p>}
      <dl className={css.facts}>
        <dt>Subject</dt><dd><Who subject={f.subject} most={1000} /></dd>
        <dt>Counted</dt><dd>{plural(f.count, 'request')}{f.keys ? `, of ${plural(f.keys, 'key')} that were new` : ''}</dd>
        <dt>First</dt><dd><Time at={f.first} /></dd>
        <dt>Last</dt><dd><Time at={f.last} /></dd>
        <dt>MITRE ATT&CK</dt><dd><Names list={f.attack} /></dd>
        <dt>Finding</dt><dd><Name>{f.id}</Name></dd>
      </dl>
      {f.subject && (
        <p className={css.acts}>
          <a className="button" href={to('/explore', { ...span, subject: f.subject })}>Its requests at that time</a>
          <a className="button" href={to('/findings', { subject: f.subject })}>All findings about it</a>
        </p>
      )}
      <section>
        <h2>{f.evidence?.length < f.count ? `The requests behind it: the first ${f.evidence.length} of ${f.count}` : 'The requests behind it'}</h2>
        {f.evidence?.length ? (
          <ol className={css.evidence}>
            {f.evidence.map((e, i) => (
              <li key={i}><span className="soft"><Time at={e.time} /></span> {e.auditID ? <a href={here({ why: e.auditID, request: e.request })}><Evidence text={e.text} /></a> : <Evidence text={e.text} />}</li>
            ))}
          </ol>
        ) : <p className="soft">None is listed.</p>}
      </section>
    </article>
  );
}

function Evidence({ text }: { text: string }) {
  return <Name most={600}>{text}</Name>;
}
