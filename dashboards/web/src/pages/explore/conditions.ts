// Which requests are shown: conditions on their columns, as the API takes them (where). In the address those that are said once and
// exactly are parameters of their own, as other pages link to them; the rest is q, written as in the field: verb!=watch subject^="a b".
import type { Changes } from '../../kit/address';
import { table } from '../../kit/words';

/** Signs: is, is not, begins with, does not begin with. */
export const SIGNS = ['=', '!=', '^=', '!^='] as const;
export type Sign = (typeof SIGNS)[number];

/** Condition selects requests by a column. Without a key it was not understood: the server says what is wrong with it. */
export interface Condition {
  key: string;
  sign: Sign;
  value: string;
}

/** KEYS are the columns, and how they are called. */
export const KEYS: Record<string, string> = table({
  subject: 'Subject', verb: 'Verb', resource: 'Resource', namespace: 'Namespace', name: 'Name', decision: 'Decision', refused: 'Refused', outcome: 'Verdict', class: 'Class', code: 'Status', userAgent: 'User agent',
  authorizer: 'Authorizer', system: 'Kubernetes’ own', rule: 'Detection', sourceIP: 'Address', group: 'Group', apiGroup: 'API group', subresource: 'Subresource', path: 'Path', user: 'Authenticated user',
  impersonated: 'Impersonated', replayed: 'Replay', apiserver: 'Apiserver', credential: 'Credential', auditID: 'Audit ID',
});

/** COUNTED are those that requests are counted by. */
export const COUNTED = Object.keys(KEYS).filter((k) => !['path', 'credential', 'auditID'].includes(k));

/** OWN are those with a parameter of their own. */
const OWN = ['subject', 'verb', 'resource', 'decision', 'outcome', 'class'];

const TOKEN = /\s*(?:([A-Za-z]+)(!\^=|!=|\^=|=)("(?:[^"\\]|\\.)*"|[^\s"]\S*|)(?=\s|$)|(\S+))/y;

/** read parses conditions as they are written. */
export function read(text: string): Condition[] {
  const list: Condition[] = [];
  TOKEN.lastIndex = 0;
  for (;;) {
    const found = TOKEN.exec(text);
    if (!found) return list;
    const [, key, sign, value = '', other] = found;
    list.push(other !== undefined ? { key: '', sign: '=', value: other } : { key: key ?? '', sign: sign as Sign, value: unquoted(value) });
  }
}

/** write is the inverse of read. */
export function write(list: Condition[]): string {
  return list.map((c) => (c.key ? c.key + c.sign + (/^[^\s"]\S*$|^$/.test(c.value) ? c.value : JSON.stringify(c.value)) : c.value)).join(' ');
}

function unquoted(value: string): string {
  if (!value.startsWith('"')) return value;
  try {
    return JSON.parse(value) as string;
  } catch {
    return value;
  }
}

/** conditionsOf reads those of an address. */
export function conditionsOf(params: URLSearchParams): Condition[] {
  const own = OWN.filter((k) => params.get(k)).map((key): Condition => ({ key, sign: '=', value: params.get(key) ?? '' }));
  return [...own, ...read(params.get('q') ?? '')];
}

/** changesTo are the parameters that hold conditions. */
export function changesTo(list: Condition[]): Changes {
  const alone = (c: Condition) => OWN.includes(c.key) && c.sign === '=' && c.value !== '' && list.filter((x) => x.key === c.key && x.sign === '=').length === 1;
  const own = Object.fromEntries(OWN.map((k) => [k, list.find((c) => c.key === k && alone(c))?.value ?? null]));
  return { ...own, q: write(list.filter((c) => !alone(c))), before: null };
}

/** same reports whether two conditions are the same. */
export function same(a: Condition, b: Condition): boolean {
  return a.key === b.key && a.sign === b.sign && a.value === b.value;
}

/** toggled adds a condition, or takes it away; what it contradicts goes. */
export function toggled(list: Condition[], c: Condition): Condition[] {
  if (list.some((x) => same(x, c))) return list.filter((x) => !same(x, c));
  return [...list.filter((x) => !(x.key === c.key && x.value === c.value)), c];
}

/** whereOf writes conditions as the API takes them: a JSON list. */
export function whereOf(list: Condition[]): string | null {
  return list.length ? JSON.stringify(list.map(textOf)) : null;
}

/** textOf writes one as the API takes it. */
export function textOf(c: Condition): string {
  return c.key ? c.key + c.sign + c.value : c.value;
}

/** WORDS of signs. */
export const WORDS: Record<Sign, string> = { '=': 'is', '!=': 'is not', '^=': 'begins with', '!^=': 'does not begin with' };
