import { useId, useState } from 'react';
import { useQuestion } from '../api/questions';
import { go, pathOf, useLinks, type Links } from '../kit/address';
import { Name, Subject } from '../kit/Name';
import { Over } from '../kit/Over';
import { subjectOf } from '../kit/request';
import { useKnown } from '../kit/scope';
import { count, quoted } from '../kit/words';
import { PAGES } from './pages';
import css from './over.module.css';

/** Search leads to a page, to a request by its audit ID, to a subject and to a namespace, from anywhere. Names are completed by the
 *  server, by their beginning or what is in them. */
export function Search({ onClose }: { onClose: () => void }) {
  const links = useLinks();
  const id = useId();
  const [text, setText] = useState('');
  const [at, setAt] = useState(''); // the option that was chosen; names that come later do not take its place
  const subjects = useCompletion('subject', text.trim());
  const namespaces = useCompletion('namespace', text.trim());
  const found = options(text.trim(), links, subjects, namespaces);
  const chosen = found.find((o) => keyOf(o) === at) ?? found[0];
  const open = (href: string) => {
    onClose();
    go(href);
  };
  return (
    <Over label="Search" onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (chosen) open(chosen.href);
        }}
      >
        <input
          // eslint-disable-next-line jsx-a11y/no-autofocus -- the dialog was opened to write here
          autoFocus
          className={css.field}
          value={text}
          placeholder="A page, a subject, a namespace, an audit ID …"
          aria-label="Search"
          spellCheck={false}
          autoComplete="off"
          role="combobox"
          aria-expanded={found.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={chosen && `${id}-${found.indexOf(chosen)}`}
          onChange={(e) => {
            setText(e.target.value);
            setAt('');
          }}
          onKeyDown={(e) => {
            const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
            if (!by) return;
            e.preventDefault();
            const next = found[(found.indexOf(chosen as Option) + by + found.length) % found.length];
            if (next) setAt(keyOf(next));
          }}
        />
      </form>
      <div id={id} role="listbox" aria-label="Where to" className={css.options}>
        {found.map((o, i) => (
          // The keyboard is with the field above: arrows and Enter.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <div key={keyOf(o)} id={`${id}-${i}`} role="option" tabIndex={-1} aria-selected={o === chosen} onClick={() => open(o.href)}>
            <span>{o.said ? o.text : o.subject ? <Subject most={160}>{o.text}</Subject> : <Name>{o.text}</Name>}</span>
            <span className="soft">
              {o.kind}
              {o.requests ? ` · ${count(o.requests)} requests` : ''}
            </span>
          </div>
        ))}
      </div>
    </Over>
  );
}

/** Option is somewhere to go; said is text of ours, subject a user name. */
interface Option {
  kind: string;
  text: string;
  href: string;
  said?: boolean;
  subject?: boolean;
  requests?: number;
}

const keyOf = (o: Option) => `${o.kind} ${o.text}`;

interface Completed {
  value: string;
  requests: number;
}

/** Names of a kind that are offered. */
const MOST = 6;

/** useCompletion asks which names begin with a text, or contain it. Those of the text before stay while they still do. */
function useCompletion(kind: 'subject' | 'namespace', text: string): Completed[] {
  const { cluster } = useKnown();
  const prefix = subjectOf(text);
  const asked = useQuestion('complete', cluster && text ? { cluster: cluster.name, kind, prefix, limit: MOST } : null);
  if (!text) return [];
  return (asked.data?.values ?? []).filter((v) => v.value.toLowerCase().includes(prefix.toLowerCase())).slice(0, MOST);
}

function options(text: string, { to }: Links, subjects: Completed[], namespaces: Completed[]): Option[] {
  const pages = PAGES.filter((p) => p.key && p.title.toLowerCase().startsWith(text.toLowerCase())).map((p): Option => ({
    kind: 'Page',
    text: p.title,
    href: to(p.path),
    said: true,
  }));
  if (!text) return pages;
  const subject = subjectOf(text);
  const completed: Option[] = [
    ...subjects.map(({ value, requests }) => ({
      kind: 'Subject',
      text: value,
      href: to(pathOf('subjects', value)),
      subject: true,
      requests,
    })),
    ...namespaces.map(({ value }) => ({
      kind: 'Requests in this namespace',
      text: value,
      href: to('/explore', { q: `namespace=${quoted(value)}` }),
    })),
  ];
  const request: Option = { kind: 'Request with this audit ID', text, href: to(pathOf('events', text)) };
  const typed: Option[] = [
    { kind: 'Subject', text: subject, href: to(pathOf('subjects', subject)), subject: true },
    { kind: 'Requests of this subject', text: subject, href: to('/explore', { subject }), subject: true },
  ];
  const others = [...completed, ...typed.filter((o) => !completed.some((c) => keyOf(c) === keyOf(o)))];
  return [...pages, ...(/^[0-9a-f-]{8,}$/i.test(text) ? [request, ...others] : [...others, request])];
}
