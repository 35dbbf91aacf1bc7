import { useRef, useState } from 'react';
import { cleanBlock } from './words';
import css from './copy.module.css';

/** Copy puts a text onto the clipboard. what says which: 'as command', 'as SQL'. */
export function Copy({ text, what = '' }: { text: string; what?: string }) {
  const [said, setSaid] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      setSaid('Not allowed here'); // plain HTTP from another machine: nothing but selecting helps
    }
    setTimeout(() => setSaid(''), 2000);
  };
  return <button type="button" data-done onClick={() => void copy()}>{said ? <span role="status">{said}</span> : `Copy ${what}`.trim()}</button>;
}

/** Text shows what the server wrote (YAML, a command, SQL) as it is, to copy and, with a file name, to save. */
export function Text({ children, label, file }: { children: string; label: string; file?: string }) {
  const pre = useRef<HTMLPreElement>(null);
  return (
    <div className={css.text} data-file={file}>
      <div className={css.acts}>
        <Copy text={children} />
        {file && <button type="button" onClick={() => save(file, children)}>Save {file}</button>}
      </div>
      {/* What scrolls has to be reachable by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre ref={pre} tabIndex={0} role="region" aria-label={label}>{cleanBlock(children)}</pre>
    </div>
  );
}

/** save hands a text to the browser as a file. The name is made of letters, digits, dots and dashes (see fileName). */
export function save(file: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain;charset=utf-8' }));
  const a = document.createElement('a');
  a.href = url;
  a.download = file;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** fileName makes a file's name of anything. */
export function fileName(...words: string[]): string {
  return words.map((w) => w.replace(/[^A-Za-z0-9.-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 60)).filter(Boolean).join('-');
}
