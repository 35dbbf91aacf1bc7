import { useId, useState, type ComponentType, type ReactNode } from 'react';
import { Name } from '../../kit/Name';
import { clean } from '../../kit/words';
import { linesOf, useObjects, useSubjects } from './queries';
import css from './whatif.module.css';

interface ObjectsProps {
  list: string[];
  onList: (list: string[]) => void;
  /** text is what is being written, which asking adds. */
  text: string;
  onText: (text: string) => void;
  error: string;
}

/** Objects takes objects to delete; the server completes them. */
export function Objects({ list, onList, text, onText, error }: ObjectsProps) {
  const add = () => {
    onList(linesOf([...list, text].join('\n')));
    onText('');
  };
  return (
    <Field label="Objects to delete" hint="ClusterRoleBinding/old-admins" value={text} onValue={onText} error={error} names={ObjectNames}
      after={<button type="button" disabled={!text.trim()} onClick={add}>Add</button>}>
      {list.length > 0 && (
        <ul className={css.sheets} aria-label="To be deleted">
          {list.map((o) => (
            <li key={o}>
              <span><Name most={120}>{o}</Name></span>
              <button type="button" className={css.away} aria-label={`Keep ${clean(o)}`} onClick={() => onList(list.filter((x) => x !== o))}>×</button>
            </li>
          ))}
        </ul>
      )}
    </Field>
  );
}

/** Whose takes a subject. */
export function Whose({ text, onText, error }: { text: string; onText: (text: string) => void; error: string }) {
  return <Field label="Only requests of" hint="anybody; alice, sa/ci:deployer" value={text} onValue={onText} error={error} names={SubjectNames} />;
}

interface FieldProps {
  label: string;
  hint: string;
  value: string;
  onValue: (text: string) => void;
  error: string;
  /** names completes what is written. */
  names: ComponentType<Completing>;
  after?: ReactNode;
  children?: ReactNode;
}

function Field({ label, hint, value, onValue, error, names: Completion, after, children }: FieldProps) {
  const id = useId();
  const [at, setAt] = useState(false);
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children}
      <div className={css.line}>
        <input id={id} value={value} placeholder={hint} list={at ? `${id}names` : undefined} spellCheck={false} autoComplete="off" autoCapitalize="off"
          aria-invalid={error !== '' || undefined} aria-describedby={`${id}error`} onFocus={() => setAt(true)} onChange={(e) => onValue(e.target.value)} />
        {after}
      </div>
      {at && <Completion id={`${id}names`} prefix={value} />}
      <div id={`${id}error`} role="alert">{error && <p className={css.error}>{clean(error)}</p>}</div>
    </div>
  );
}

interface Completing {
  id: string;
  prefix: string;
}

function ObjectNames({ id, prefix }: Completing) {
  return <Options id={id} names={useObjects(prefix)} />;
}

function SubjectNames({ id, prefix }: Completing) {
  return <Options id={id} names={useSubjects(prefix)} />;
}

function Options({ id, names }: { id: string; names: string[] }) {
  return <datalist id={id}>{names.map((n) => <option key={n} value={n} />)}</datalist>;
}
