// The list elsewhere: as a command, as a request to the API, as SQL over the store's tables (docs/schema.md), as CSV of what is loaded.
import { root } from '../../api/ask';
import { word } from '../../kit/shell';
import { textOf, whereOf, type Condition } from './conditions';
import type { Event } from './queries';

interface Asked {
  cluster: string;
  from: string;
  to: string;
}

/** commandOf lists the same on a command line. */
export function commandOf(asked: Asked, list: Condition[]): string {
  const flags: [string, string][] = [['cluster', asked.cluster], ['from', asked.from], ['to', asked.to], ...list.map((c): [string, string] => ['where', textOf(c)]), ['limit', '500']];
  return ['retrial events', ...flags.map(([k, v]) => `--${k} ${word(v)}`)].join(' ');
}

/** questionOf asks the API for it. */
export function questionOf(asked: Asked, list: Condition[]): string {
  const where = whereOf(list);
  const parameters: [string, string][] = [['cluster', asked.cluster], ['from', asked.from], ['to', asked.to], ...(where ? [['where', where] as [string, string]] : []), ['limit', '500']];
  return ['curl', '-sG', word(`${root(document.baseURI)}events`), ...parameters.map(([k, v]) => `--data-urlencode ${word(`${k}=${v}`)}`)].join(' ');
}

/** Columns as they are in the store. Of lists any entry counts. */
const SQL: Record<string, string> = {
  subject: 'subject', verb: 'verb', resource: 'object_resource', decision: 'recorded', outcome: 'outcome', class: 'class', replayed: 'replayed', user: 'user_name', impersonated: 'impersonated_name',
  apiGroup: 'object_api_group', subresource: 'object_subresource', namespace: 'object_namespace', userAgent: 'user_agent', apiserver: 'apiserver', authorizer: 'authorizer', code: 'toString(code)',
  name: 'object_name', credential: 'credential', refused: "if(recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected', 'yes', 'no')",
  system: "if(subject = 'system:anonymous' OR NOT startsWith(subject, 'system:') OR startsWith(subject, 'system:serviceaccount:') AND NOT startsWith(subject, 'system:serviceaccount:kube-'), 'no', 'yes')", auditID: 'audit_id', path: "substringIndex(request_uri, '?', 1)",
};
const LISTS: Record<string, string> = { rule: "arrayMap(h -> substringIndex(h, '/', 1), hits)", sourceIP: 'source_ips', group: 'if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)' };

/** sqlOf selects the list. */
export function sqlOf(asked: Asked, list: Condition[]): string {
  const by = new Map<string, string[]>();
  for (const c of list) {
    const not = c.sign.startsWith('!');
    const place = `${c.key} ${not}`;
    by.set(place, [...(by.get(place) ?? []), test(c)]);
  }
  const conditions = [...by].map(([place, tests]) => (place.endsWith('true') ? `NOT (${tests.join(' OR ')})` : tests.length > 1 ? `(${tests.join(' OR ')})` : (tests[0] ?? '')));
  return [
    'SELECT request_received, subject, verb, request_uri, code, recorded, replayed, outcome, class, cause, audit_id',
    'FROM events FINAL',
    `WHERE cluster = ${text(asked.cluster)} AND sign = 1 AND outcome != ''`,
    `  AND request_received >= ${moment(asked.from)} AND request_received < ${moment(asked.to)}`,
    ...conditions.map((c) => `  AND ${c}`),
    'ORDER BY request_received DESC',
    'LIMIT 500',
  ].join('\n');
}

function test(c: Condition): string {
  const begins = c.sign.endsWith('^=');
  const one = (x: string) => (begins ? `startsWith(${x}, ${text(c.value)})` : `${x} = ${text(c.value)}`);
  const many = LISTS[c.key];
  if (many) return c.value === '' && !begins ? `empty(${many})` : `arrayExists(x -> ${one('x')}, ${many})`;
  return one(SQL[c.key] ?? 'NULL');
}

function moment(iso: string): string {
  return `toDateTime64('${iso.replace('T', ' ').replace('Z', '')}', 6, 'UTC')`;
}

/** text is a string of SQL, whatever is in it. */
function text(s: string): string {
  const bytes = [...new TextEncoder().encode(s)];
  const plain = !/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(s);
  if (plain) return `'${s.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
  return `'${bytes.map((b) => (b < 32 || b > 126 || b === 39 || b === 92 ? '\\x' + b.toString(16).padStart(2, '0') : String.fromCharCode(b))).join('')}'`;
}

const CSV: (keyof Event)[] = ['time', 'subject', 'verb', 'requestURI', 'group', 'resource', 'subresource', 'namespace', 'name', 'code', 'recorded', 'replayed', 'outcome', 'class', 'cause', 'authorizer', 'grantCount', 'sourceIP', 'userAgent', 'impersonatedBy', 'auditID'];

/** csvOf writes requests as CSV (RFC 4180). What a spreadsheet would take for a formula is marked as text. */
export function csvOf(events: Event[]): string {
  const cell = (v: unknown) => {
    const s = v === undefined || v === null ? '' : typeof v === 'number' ? String(v) : typeof v === 'string' ? v : JSON.stringify(v);
    const safe = typeof v === 'string' && /^[=+\-@\t\r]/.test(s) ? `'${s}` : s;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [CSV.join(), ...events.map((e) => CSV.map((k) => cell(e[k])).join())].join('\r\n') + '\r\n';
}
