import { useId, useState } from 'react';
import { useLinks, type Changes } from '../../kit/address';
import { useNames } from './queries';
import css from './access.module.css';

/** Every parameter of a question; asking one clears the other's. */
const NONE: Changes = { verb: null, resource: null, namespace: null, name: null, path: null, subject: null, group: null, via: null };

/** WhoForm asks who can, as a sentence. */
export function WhoForm() {
  const { params, change } = useLinks();
  const [q, setQ] = useState(() => ({ verb: params.get('verb') ?? '', what: params.get('path') ?? params.get('resource') ?? '', namespace: params.get('namespace') ?? '', name: params.get('name') ?? '' }));
  const isPath = q.what.startsWith('/');
  const ask = () => {
    const { verb, what, namespace, name } = { verb: q.verb.trim(), what: q.what.trim(), namespace: q.namespace.trim(), name: q.name.trim() };
    if (verb && what) change({ ...NONE, verb, ...(isPath ? { path: what } : { resource: what, namespace, name }) });
  };
  return (
    <form className={css.sentence} onSubmit={(e) => { e.preventDefault(); ask(); }} aria-label="Who can">
      <span>Who can</span>
      <Blank kind="verb" label="Verb" hint="get" value={q.verb} onValue={(verb) => setQ({ ...q, verb })} required width={9} />
      <Blank kind={isPath ? 'path' : 'resource'} label="Resource or path" hint="secrets" value={q.what} onValue={(what) => setQ({ ...q, what })} required width={20} />
      {!isPath && (
        <>
          <span>in</span>
          <Blank kind="namespace" label="Namespace" hint="any namespace" value={q.namespace} onValue={(namespace) => setQ({ ...q, namespace })} width={15} />
          <span>named</span>
          <Blank kind="name" label="Name" hint="any name" value={q.name} onValue={(name) => setQ({ ...q, name })} width={13} more={{ resource: q.what.split(/[./]/)[0] ?? '', namespace: q.namespace }} />
        </>
      )}
      <span>?</span>
      <button className="primary">Ask</button>
    </form>
  );
}

/** CanForm asks what somebody can do. */
export function CanForm() {
  const { params, change } = useLinks();
  const [subject, setSubject] = useState(params.get('subject') ?? '');
  const [group, setGroup] = useState(params.get('group') ?? '');
  const ask = () => {
    if (subject.trim()) change({ ...NONE, subject: subject.trim(), group: group.trim() });
  };
  return (
    <form className={css.sentence} aria-label="What can" onSubmit={(e) => { e.preventDefault(); ask(); }}>
      <span>What can</span>
      <Blank kind="subject" label="Subject" hint="alice, sa/ci:deployer, group:devs" value={subject} onValue={setSubject} required width={30} />
      <span>do, as a member of</span>
      <Blank kind="group" label="Groups" hint="those of its requests" value={group} onValue={setGroup} width={18} />
      <span>?</span>
      <button className="primary">Ask</button>
    </form>
  );
}

interface BlankProps {
  kind: string;
  label: string;
  hint: string;
  value: string;
  onValue: (text: string) => void;
  required?: boolean;
  width: number;
  more?: { resource?: string; namespace?: string };
}

/** Blank is a word of the sentence to fill in; the server completes it. */
function Blank({ kind, label, hint, value, onValue, required, width, more }: BlankProps) {
  const id = useId();
  const [at, setAt] = useState(false);
  return (
    <>
      <input className={css.blank} aria-label={label} placeholder={hint} value={value} required={required} list={at ? id : undefined} spellCheck={false} autoComplete="off" autoCapitalize="off"
        style={{ width: `${width + 2}ch` }} onFocus={() => setAt(true)} onChange={(e) => onValue(e.target.value)} />
      {at && <Completion id={id} kind={kind} prefix={value} more={more} />}
    </>
  );
}

function Completion({ id, kind, prefix, more }: { id: string; kind: string; prefix: string; more: BlankProps['more'] }) {
  const names = useNames(kind, prefix, more);
  return <datalist id={id}>{names.map((n) => <option key={n} value={n} />)}</datalist>;
}
