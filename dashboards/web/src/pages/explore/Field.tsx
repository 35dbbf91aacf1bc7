// The field that conditions are written in, with completion: a column, then its values; or a value of whichever column has it.
import { useId, useRef, useState, type KeyboardEvent } from 'react';
import { Name } from '../../kit/Name';
import { count } from '../../kit/words';
import { KEYS, SIGNS, WORDS, type Condition, type Sign } from './conditions';
import { FIXED, useAnywhere, useSettled, useValues } from './queries';
import css from './explore.module.css';

/** Option is something to take: a condition, or text to go on from. */
interface Option {
  id: string;
  key?: string;
  sign?: Sign;
  value?: string;
  note?: string | undefined;
  /** next is the text to go on from; else the condition is taken. */
  next?: string;
}

const DRAFT = /^\s*([A-Za-z]+)\s*(!\^=|!=|\^=|=)\s*([\s\S]*)$/;

/** Field adds conditions. Enter takes what is chosen, Tab writes it out, Backspace in the empty field takes the last one away. */
export function Field({ list, onAdd, onLast }: { list: Condition[]; onAdd: (c: Condition) => void; onLast: () => void }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState(false);
  const { options, pending, error } = useOptions(text, list, open);
  const chosen = options[Math.min(at, options.length - 1)];
  const type = (next: string) => {
    setText(next);
    setAt(0);
    setOpen(true);
  };
  const take = (o: Option) => {
    input.current?.focus();
    if (o.next !== undefined) type(o.next);
    else if (o.key && o.sign) {
      onAdd({ key: o.key, sign: o.sign, value: o.value ?? '' });
      type('');
      setOpen(false);
    }
  };
  const press = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) {
      setOpen(true);
      if (options.length) setAt((options.indexOf(chosen as Option) + by + options.length) % options.length);
    } else if (e.key === 'Enter' && chosen && (open || text)) take(chosen);
    else if (e.key === 'Tab' && !e.shiftKey && open && text && chosen) type(chosen.next ?? `${chosen.key ?? ''}${chosen.sign ?? '='}${chosen.value ?? ''}`);
    else if (e.key === 'Escape' && open) setOpen(false);
    else if (e.key === 'Backspace' && text === '' && list.length) onLast();
    else return;
    e.preventDefault();
  };
  return (
    <div className={css.field}>
      <input ref={input} value={text} placeholder="Filter: a subject, a namespace, verb=get, code!=200 …" aria-label="Filter requests" spellCheck={false} autoComplete="off" autoCapitalize="off"
        role="combobox" aria-expanded={open && options.length > 0} aria-controls={id} aria-autocomplete="list" aria-activedescendant={open && chosen ? `${id}-${options.indexOf(chosen)}` : undefined}
        onChange={(e) => type(e.target.value)} onFocus={() => setOpen(true)} onClick={() => setOpen(true)} onBlur={() => setOpen(false)} onKeyDown={press} />
      <div className={css.drop} hidden={!open}>
        <div id={id} role="listbox" aria-label="Filters to take">
          {options.map((o, i) => (
            // The keyboard is with the field above: arrows and Enter.
            // eslint-disable-next-line jsx-a11y/click-events-have-key-events
            <div key={o.id} id={`${id}-${i}`} role="option" tabIndex={-1} aria-selected={o === chosen} onMouseDown={(e) => e.preventDefault()} onClick={() => take(o)}>
              <span>{o.next !== undefined ? <b>{KEYS[o.key ?? '']}</b> : <><span className="soft">{KEYS[o.key ?? ''] ?? o.key} {WORDS[o.sign ?? '=']}</span> <Name most={120}>{o.value || '(none)'}</Name></>}</span>
              <span className="soft">{o.note ?? (o.next !== undefined ? <span className="mono">{o.key}</span> : '')}</span>
            </div>
          ))}
        </div>
        {!options.length && <p className={css.hint} role="status">{pending ? 'Looking …' : error ? <Name plain most={300}>{error.message}</Name> : 'Nothing of this name. Want KEY=VALUE, such as namespace=prod.'}</p>}
        <p className={css.hint} aria-hidden><kbd>=</kbd> is <kbd>!=</kbd> is not <kbd>^=</kbd> begins with · the values of one column are alternatives</p>
      </div>
    </div>
  );
}

function useOptions(text: string, list: Condition[], open: boolean): { options: Option[]; pending: boolean; error: Error | null } {
  const draft = DRAFT.exec(text);
  const key = draft && (Object.keys(KEYS).find((k) => k.toLowerCase() === draft[1]?.toLowerCase()) ?? null);
  const sign = (SIGNS as readonly string[]).includes(draft?.[2] ?? '') ? (draft?.[2] as Sign) : '=';
  const value = draft?.[3]?.trim() ?? '';
  const bare = text.trim();
  const later = useSettled(key ? value : bare);
  const settled = key && FIXED[key] ? value : later;
  const values = useValues(open ? key : null, settled, list);
  const anywhere = useAnywhere(open && !draft ? settled : '');
  if (key) {
    const typed: Option[] = value && !(FIXED[key] && values.values.length && !sign.includes('^')) ? [{ id: 'typed', key, sign, value, note: 'as written' }] : [];
    const rest = values.values.filter((v) => !typed.length || v.value !== value).map((v): Option => ({ id: 'v' + v.value, key, sign, value: v.value, note: v.requests ? `${count(v.requests)} requests` : undefined }));
    const none: Option[] = value || FIXED[key] || key === 'code' ? [] : [{ id: 'none', key, sign, value: '', note: 'requests without one' }];
    return { options: [...typed, ...rest, ...none], pending: values.pending, error: values.error };
  }
  if (draft) return { options: [], pending: false, error: null };
  const lower = bare.toLowerCase();
  const keys = Object.entries(KEYS).filter(([k, name]) => k.toLowerCase().startsWith(lower) || name.toLowerCase().startsWith(lower)).map(([k]): Option => ({ id: 'k' + k, key: k, next: k + '=' }));
  const found = anywhere.map(({ key: k, value: v }): Option => ({ id: `a${k} ${v.value}`, key: k, sign: '=', value: v.value, note: v.requests ? `${count(v.requests)} requests` : undefined }));
  const shaped: Option[] = bare.startsWith('/') ? [{ id: 'path', key: 'path', sign: '^=', value: bare }]
    : /^[0-9a-f]{8}-[0-9a-f-]{4,}$/i.test(bare) ? [{ id: 'id', key: 'auditID', sign: '=', value: bare }]
    : /^[1-5]\d\d$/.test(bare) ? [{ id: 'code', key: 'code', sign: '=', value: bare }] : [];
  return { options: bare ? [...shaped, ...keys.slice(0, 4), ...found] : keys, pending: settled !== bare, error: null };
}
