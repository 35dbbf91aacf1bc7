import { useId, useState } from 'react';
import { go, pathOf, useLinks, type Links } from '../kit/address';
import { Name } from '../kit/Name';
import { Over } from '../kit/Over';
import { subjectOf } from '../kit/request';
import { PAGES } from './pages';
import css from './over.module.css';

/** Search leads to a page, to a request by its audit ID, and to a subject, from anywhere. */
export function Search({ onClose }: { onClose: () => void }) {
  const links = useLinks();
  const id = useId();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const found = options(text.trim(), links);
  const chosen = found[Math.min(at, found.length - 1)];
  const open = (href: string) => {
    onClose();
    go(href);
  };
  return (
    <Over label="Search" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); if (chosen) open(chosen.href); }}>
        {/* eslint-disable-next-line jsx-a11y/no-autofocus -- the dialog was opened to write here */}
        <input autoFocus className={css.field} value={text} placeholder="A page, an audit ID, a subject …" aria-label="Search" spellCheck={false} autoComplete="off"
          role="combobox" aria-expanded={found.length > 0} aria-controls={id} aria-autocomplete="list" aria-activedescendant={chosen && `${id}-${found.indexOf(chosen)}`}
          onChange={(e) => { setText(e.target.value); setAt(0); }}
          onKeyDown={(e) => {
            const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
            if (!by) return;
            e.preventDefault();
            setAt((found.indexOf(chosen as Option) + by + found.length) % found.length);
          }} />
      </form>
      <div id={id} role="listbox" aria-label="Where to" className={css.options}>
        {found.map((o, i) => (
          // The keyboard is with the field above: arrows and Enter.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <div key={o.kind + o.text} id={`${id}-${i}`} role="option" tabIndex={-1} aria-selected={o === chosen} onClick={() => open(o.href)}>
            <span>{o.said ? o.text : <Name>{o.text}</Name>}</span><span className="soft">{o.kind}</span>
          </div>
        ))}
      </div>
    </Over>
  );
}

/** Option is somewhere to go; said is text of ours. */
interface Option {
  kind: string;
  text: string;
  href: string;
  said?: boolean;
}

function options(text: string, { to }: Links): Option[] {
  const pages = PAGES.filter((p) => p.key && p.title.toLowerCase().startsWith(text.toLowerCase()))
    .map((p) => ({ kind: 'Page', text: p.title, href: to(p.path), said: true }));
  if (!text) return pages;
  const subject = subjectOf(text);
  const request = { kind: 'Request with this audit ID', text, href: to(pathOf('events', text)) };
  const others = [
    { kind: 'Subject', text: subject, href: to(pathOf('subjects', subject)) },
    { kind: 'Requests of this subject', text: subject, href: to('/explore', { subject }) },
  ];
  return [...pages, ...(/^[0-9a-f-]{8,}$/i.test(text) ? [request, ...others] : [...others, request])];
}
