// What becomes of accesses, in words, and where in the form an error belongs.
import type { Posted } from '../../api/ask';
import { whatOf } from '../../kit/request';
import { table } from '../../kit/words';

export type Drafted = Posted<'whatif'>;
export type Access = Drafted['accesses'][number];
type Counts = Drafted['summary'];

/** Class is what becomes of an access. */
export interface Class {
  id: string;
  /** count is its member of a summary. */
  count: keyof Counts;
  /** label is how a row is called, title how the figure is. */
  label: string;
  title: string;
  tone: string;
  /** text says it of some accesses, one of one. */
  text: string;
  one: string;
}

const MAYBE_NOT = 'may be refused: what decides it is not known';
const MAYBE = 'may be allowed: what decides it is not known';

/** CLASSES that change something, what hurts most first. */
export const CLASSES: Class[] = [
  { id: 'REVOKED', count: 'revoked', label: 'refused', title: 'Would be refused', tone: 'critical', text: 'that were used would be refused', one: 'that was used would be refused' },
  { id: 'MAYBE_REVOKED', count: 'maybe_revoked', label: 'may be refused', title: 'May be refused', tone: 'warn', text: MAYBE_NOT, one: MAYBE_NOT },
  { id: 'UNKNOWN', count: 'unknown', label: 'webhook decides', title: 'Not known', tone: 'indeterminate', text: 'are decided by a webhook, whose answers no log holds', one: 'is decided by a webhook, whose answers no log holds' },
  { id: 'GAINED', count: 'gained', label: 'allowed', title: 'Would be allowed', tone: 'accent', text: 'that were refused would be allowed', one: 'that was refused would be allowed' },
  { id: 'MAYBE_GAINED', count: 'maybe_gained', label: 'may be allowed', title: 'May be allowed', tone: 'low', text: MAYBE, one: MAYBE },
];

const BY_ID = table(Object.fromEntries(CLASSES.map((c, i) => [c.id, { ...c, rank: i }])));

/** classOf is the class of an access; one that is new here keeps its name. */
export function classOf(id: string): Class & { rank: number } {
  return BY_ID[id] ?? { id, count: 'unknown', label: id.toLowerCase().replaceAll('_', ' '), title: id, tone: 'none', text: 'change otherwise', one: 'changes otherwise', rank: CLASSES.length };
}

/** keyOf tells accesses apart. */
export function keyOf(a: Access): string {
  return JSON.stringify([a.class, a.subject, a.groups, a.verb, a.apiGroup, a.resource, a.subresource, a.namespace, a.name, a.path, a.check, a.allowed, a.first]);
}

/** askedFor names what an access is of, as kubectl takes it. */
export function askedFor(a: Access): string {
  return whatOf({ resource: a.resource, group: a.apiGroup, subresource: a.subresource, path: a.path ?? '' });
}

/** Latest is when some accesses were last used, and by whom. */
export interface Latest {
  subjects: number;
  access: Access;
}

/** latestOf finds it; null where there are none. */
export function latestOf(list: Access[], id: string): Latest | null {
  const of = list.filter((a) => a.class === id);
  const [first, ...rest] = of;
  if (!first) return null;
  return { subjects: new Set(of.map((a) => a.subject)).size, access: rest.reduce((a, b) => (Date.parse(b.last) > Date.parse(a.last) ? b : a), first) };
}

/** Place is what an error is about: a file and a line in it, the objects to delete, the subject, or nothing of the form. */
export type Place = { at: 'draft'; file: string; line: number; text: string } | { at: 'delete' | 'subject' | 'none'; text: string };

/** placeOf reads an error of the server, whose words begin with the file and the line. */
export function placeOf(status: number, message: string, files: string[], deletes: string[]): Place {
  if (status === 404 && message.startsWith('no request of "')) return { at: 'subject', text: message };
  if (status !== 400) return { at: 'none', text: message };
  const file = files.filter((f) => message.startsWith(`${f}:`)).sort((a, b) => b.length - a.length)[0];
  if (file === undefined) return { at: deletes.length ? 'delete' : 'none', text: message };
  const rest = message.slice(file.length + 1);
  const [all = '', line] = /^(?:(\d+):)?\s*(?:line \d+: )?/.exec(rest) ?? [];
  const inside = /^\s*(?:yaml: )?line (\d+):/.exec(rest);
  return { at: 'draft', file, line: Number(line ?? inside?.[1] ?? 0), text: rest.slice(all.length) };
}

/** startOf is where a line of a text begins, and endOf where it ends. */
export function lineOf(text: string, line: number): [start: number, end: number] {
  let start = 0;
  for (let n = 1; n < line; n++) {
    const next = text.indexOf('\n', start);
    if (next < 0) break;
    start = next + 1;
  }
  const end = text.indexOf('\n', start);
  return [start, end < 0 ? text.length : end];
}
