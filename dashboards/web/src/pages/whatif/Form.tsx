import { useEffect, useId, useRef, useState } from 'react';
import type { Failure } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { keepDraft, keptDraft, PASTED, written, type Sheet } from '../../kit/draft';
import { Name } from '../../kit/Name';
import { useScope } from '../../kit/scope';
import { Time } from '../../kit/Time';
import { clean } from '../../kit/words';
import { Objects, Whose } from './Fields';
import { linesOf, type Asking } from './queries';
import { lineOf, placeOf } from './words';
import css from './whatif.module.css';

/** MOST is how many bytes a draft may have, of which a question of 4 MiB is made. */
const MOST = 3 << 20;

const EXAMPLE = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}`;

/** Form takes a change: manifests, objects to delete, whose requests. again asks the same question another time. */
export function Form({ asking, failure, again }: { asking: Asking; failure: Failure | null; again: () => void }) {
  const { here } = useLinks();
  const [sheets, setSheets] = useState<Sheet[]>(() => shownFirst(asking));
  const [open, setOpen] = useState(0);
  const [deletes, setDeletes] = useState(asking.deletes);
  const [adding, setAdding] = useState('');
  const [subject, setSubject] = useState(asking.subject);
  const [wrong, setWrong] = useState('');
  const [over, setOver] = useState(false);
  const [seen, setSeen] = useState(asking);
  if (seen !== asking) { // the address asks something else: what it asks is shown
    setSeen(asking);
    setSheets(shownFirst(asking));
    setDeletes(asking.deletes);
    setSubject(asking.subject);
    setAdding('');
    setWrong('');
    setOpen(0);
  }
  const form = useRef<HTMLFormElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const sheet = sheets[open] ?? sheets[0] ?? { name: PASTED, text: '' };
  const place = failure && placeOf(failure.status, failure.message, sheets.map((s) => s.name), asking.deletes);
  const inDraft = place?.at === 'draft' ? place : null;

  const take = async (files: Iterable<File>) => {
    setWrong('');
    let next = written(sheets);
    for (const file of files) {
      if (file.size + sizeOf(next) > MOST) { setWrong(`${file.name} makes the draft larger than 3 MiB: ask about parts of it.`); return; }
      const text = await file.text();
      if (text.includes('\0')) { setWrong(`${file.name} is not text: choose files of YAML or JSON.`); return; }
      next = [...next.filter((s) => s.name !== file.name), { name: file.name, text }];
    }
    if (!next.length) return;
    setSheets(next);
    setOpen(next.length - 1);
    keepDraft(next);
  };
  const latest = useRef(take);
  useEffect(() => {
    latest.current = take;
  });
  useEffect(() => {
    const it = form.current;
    const drag = (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes('Files')) return;
      e.preventDefault();
      setOver(e.type === 'dragover');
      if (e.type === 'drop') void latest.current(e.dataTransfer.files);
    };
    const kinds = ['dragover', 'dragleave', 'drop'] as const;
    for (const kind of kinds) it?.addEventListener(kind, drag);
    return () => {
      for (const kind of kinds) it?.removeEventListener(kind, drag);
    };
  }, []);

  const write = (text: string) => setSheets(sheets.map((s) => (s === sheet ? { ...s, text } : s)));
  const drop = (s: Sheet) => {
    const rest = sheets.filter((x) => x !== s);
    setSheets(rest.length ? rest : [{ name: PASTED, text: '' }]);
    setOpen(0);
    keepDraft(rest);
  };
  const show = (file: string, line: number) => {
    const at = sheets.findIndex((s) => s.name === file);
    setOpen(Math.max(0, at));
    const text = sheets[at]?.text ?? '';
    requestAnimationFrame(() => {
      const it = area.current;
      if (!it) return;
      it.focus();
      it.setSelectionRange(...lineOf(text, line));
      it.scrollTop = Math.max(0, (line - 4) * (parseFloat(getComputedStyle(it).lineHeight) || 18));
    });
  };
  const ask = () => {
    const all = linesOf([...deletes, adding].join('\n'));
    const drafted = written(sheets);
    if (!drafted.length && !all.length) { setWrong('Nothing is drafted: paste a manifest, or name an object to delete.'); return; }
    if (sizeOf(drafted) > MOST) { setWrong('The draft is larger than 3 MiB: ask about parts of it.'); return; }
    setWrong('');
    setDeletes(all);
    setAdding('');
    const to = here({ draft: keepDraft(sheets), delete: all.join('\n'), subject: subject.trim(), class: null, find: null, sort: null, rows: null });
    if (to === location.hash) again();
    else location.hash = to;
  };
  const error = wrong || (inDraft ? `${inDraft.line ? `Line ${inDraft.line}: ` : ''}${inDraft.text}` : '');

  return (
    <form ref={form} className={css.form} data-over={over || undefined} aria-label="A change" onSubmit={(e) => { e.preventDefault(); ask(); }}>
      <div className={css.draft}>
        <div className={css.bar}>
          <label htmlFor={`${id}text`}>Manifests to apply</label>
          <label className={css.choose}>Choose files<input type="file" multiple accept=".yaml,.yml,.json,application/yaml,application/json,text/*"
            onChange={(e) => { void take([...(e.target.files ?? [])]); e.target.value = ''; }} /></label>
        </div>
        {(sheets.length > 1 || sheet.name !== PASTED) && (
          <ul className={css.sheets} aria-label="Files of the draft">
            {sheets.map((s, i) => (
              <li key={s.name}>
                <button type="button" aria-pressed={s === sheet} onClick={() => setOpen(i)}><Name most={60} plain>{s.name}</Name></button>
                <button type="button" className={css.away} aria-label={`Remove ${clean(s.name)}`} onClick={() => drop(s)}>×</button>
              </li>
            ))}
          </ul>
        )}
        <textarea id={`${id}text`} ref={area} rows={12} spellCheck={false} autoComplete="off" autoCapitalize="off" placeholder={EXAMPLE} value={sheet.text}
          aria-invalid={error !== '' || undefined} aria-describedby={`${id}hint ${id}error`} onChange={(e) => write(e.target.value)} onBlur={() => written(sheets).length > 0 && keepDraft(sheets)} />
        <div id={`${id}error`} role="alert">
          {error && (
            <p className={css.error}>
              {inDraft && sheets.length > 1 && !wrong && <><Name most={80}>{inDraft.file}</Name> </>}{clean(error)}{' '}
              {inDraft && inDraft.line > 0 && !wrong && <button type="button" onClick={() => show(inDraft.file, inDraft.line)}>Go to line {inDraft.line}</button>}
            </p>
          )}
        </div>
        <p className="soft small" id={`${id}hint`}>Roles, ClusterRoles and their bindings, as kubectl apply takes them: paste, choose or drop them. What they do not name stays as it is.</p>
      </div>
      <div className={css.side}>
        <Objects list={deletes} onList={setDeletes} text={adding} onText={setAdding} error={place?.at === 'delete' ? place.text : ''} />
        <Whose text={subject} onText={setSubject} error={place?.at === 'subject' ? place.text : ''} />
        <Span />
        {asking.draft === null && <p className={css.warn}>This address asks about a draft that is in another tab, or was replaced since. Paste it here, and ask again.</p>}
        <div className={css.acts}>
          <button className="primary">Ask what it would break</button>
          {(written(sheets).length > 0 || deletes.length > 0) && (
            <button type="button" onClick={() => { setSheets([{ name: PASTED, text: '' }]); setDeletes([]); setAdding(''); setSubject(''); setWrong(''); keepDraft([]); location.hash = here({ draft: null, delete: null, subject: null, class: null, find: null, sort: null, rows: null }); }}>Clear</button>
          )}
        </div>
        <p className="soft small">Nothing of it is applied. The query log keeps that it was asked.</p>
      </div>
    </form>
  );
}

/** shownFirst is the draft that the address asks about; what was kept, where it asks about nothing, or about one that is not here. */
function shownFirst({ mark, deletes, subject }: Asking): Sheet[] {
  const kept = keptDraft();
  return kept.length > 0 && (mark !== '' || (!deletes.length && subject === '')) ? kept : [{ name: PASTED, text: '' }];
}

function sizeOf(sheets: Sheet[]): number {
  return new Blob(sheets.map((s) => s.text)).size;
}

/** Span says which requests are asked: everything stored, unless the range says otherwise. */
function Span() {
  const { range, from, to } = useScope();
  const { here } = useLinks();
  if (range.name === 'all') return <p className="soft small">Asks all requests that are stored, <Time at={from} /> to <Time at={to} />.</p>;
  return (
    <p className={css.warn}>
      Asks the requests from <Time at={from} /> to <Time at={to} /> alone. What is done once a month may not be among them: <a href={here({ range: null, from: null, to: null })}>ask everything stored</a>
    </p>
  );
}
