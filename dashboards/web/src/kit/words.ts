// Words and numbers. What comes from an audit event was chosen by some client and is hostile: it becomes text, never markup
// (React sees to that), and characters that change how text is read are shown as escapes (clean).

const unreadable = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

function escape(c: string): string {
  if (c === '\n') return '\\n';
  if (c === '\t') return '\\t';
  return c.length > 1 ? `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}` : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');
}

/** clean shows unreadable characters as escapes, as the commands print them. When there are some, backslashes are doubled, so
 *  that an escape shown was not in the text. */
export function clean(s: string | null | undefined): string {
  const text = s ?? '';
  return text.search(unreadable) < 0 ? text : text.replaceAll('\\', '\\\\').replace(unreadable, escape);
}

/** cleanBlock is clean for text of several lines, whose line breaks stay. */
export function cleanBlock(s: string): string {
  return s.replace(unreadable, (c) => (c === '\n' ? c : escape(c)));
}

/** short cuts a long text and says how much is left out. */
export function short(s: string, most = 160): string {
  if (s.length <= most + 20) return s;
  const head = s.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return `${head}… (${count(s.length - head.length)} more characters)`;
}

/** count writes a whole number. */
export function count(n: number | null | undefined): string {
  return (n ?? 0).toLocaleString('en-US');
}

/** plural puts a number before its noun. */
export function plural(n: number | null | undefined, one: string, many = one + 's'): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** percent writes a share. It never rounds something short of everything up to 100 %, nor something down to nothing. */
export function percent(part: number, whole: number): string {
  if (!whole) return '–';
  const p = (100 * part) / whole;
  if (p === 0 || p === 100) return `${p} %`;
  if (p > 99.99) return '> 99.99 %';
  if (p < 0.01) return '< 0.01 %';
  return `${p.toFixed(p > 99 || p < 1 ? 2 : 1)} %`;
}

/** sentence begins with a capital letter and ends with a full stop. */
export function sentence(s: string | null | undefined): string {
  return s ? s.charAt(0).toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.') : '';
}

/** table is a table of words with no entries but its own: what is looked up may be called __proto__. */
export function table<T>(entries: Record<string, T>): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, entries);
}

/** OUTCOMES of verdicts, in the order they are listed in. */
export const OUTCOMES = ['match', 'drift', 'ambiguous', 'indeterminate', 'not_judged'] as const;

/** DECISIONS and how they are called. */
export const DECISIONS: Record<string, string> = table({ allow: 'allowed', forbid: 'forbidden', none: 'no decision' });

/** SEVERITIES of findings, the worst first. */
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'] as const;

/** label is how an outcome is called. */
export function label(outcome: string): string {
  return outcome.replace('_', ' ');
}

/** quoted writes a value of a condition as /explore reads it: in quotes where it has spaces. */
export function quoted(value: string): string {
  return /^[^\s"]\S*$/.test(value) ? value : JSON.stringify(value);
}
