// Filters that are parameters of the address.
import { useId, useState, type ReactNode } from 'react';
import { useLinks } from './address';
import css from './filter.module.css';

/** Filters is a row of them. names are their parameters: when one is set, all can be cleared. */
export function Filters({ names, children }: { names: string[]; children: ReactNode }) {
  const { params, here } = useLinks();
  return (
    <div className={css.filters} role="group" aria-label="Filters">
      {children}
      {names.some((n) => params.get(n)) && <a className="button plain" href={here(Object.fromEntries(names.map((n) => [n, null])))}>Clear</a>}
    </div>
  );
}

/** TextFilter takes a text, exactly as the log has it, when Enter is pressed or the field is left. */
export function TextFilter({ name, label, width }: { name: string; label: string; width?: string }) {
  const { params, change } = useLinks();
  const id = useId();
  const value = params.get(name) ?? '';
  const take = (text: string) => text !== value && change({ [name]: text });
  return (
    <div className={css.field} data-set={value ? true : undefined}>
      <label htmlFor={id}>{label}</label>
      <input key={value} id={id} defaultValue={value} type="search" placeholder="any" spellCheck={false} autoComplete="off" style={{ width }}
        onBlur={(e) => take(e.target.value)} onKeyDown={(e) => e.key === 'Enter' && take(e.currentTarget.value)} onChange={(e) => e.target.value === '' && take('')} />
    </div>
  );
}

/** FindFilter narrows what is shown while it is written. */
export function FindFilter({ name, label, hint, width }: { name: string; label: string; hint?: string; width?: string }) {
  const { params, change } = useLinks();
  const id = useId();
  const value = params.get(name) ?? '';
  const [text, setText] = useState(value);
  const [seen, setSeen] = useState(value);
  if (seen !== value) { // the address was changed by something else
    setSeen(value);
    setText(value);
  }
  const write = (now: string) => {
    setText(now);
    setSeen(now);
    change({ [name]: now }, 'replace');
  };
  return (
    <div className={css.field} data-set={value ? true : undefined}>
      <label htmlFor={id}>{label}</label>
      <input id={id} value={text} type="search" placeholder={hint} spellCheck={false} autoComplete="off" style={{ width }} onChange={(e) => write(e.target.value)} />
    </div>
  );
}

/** PickFilter chooses one of a few values. */
export function PickFilter({ name, label, values }: { name: string; label: string; values: [value: string, text: string][] }) {
  const { params, change } = useLinks();
  const id = useId();
  const value = params.get(name) ?? '';
  return (
    <div className={css.field} data-set={value ? true : undefined}>
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(e) => change({ [name]: e.target.value })}>
        <option value="">any</option>
        {value && !values.some(([v]) => v === value) && <option value={value}>{value}</option>}
        {values.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
      </select>
    </div>
  );
}
