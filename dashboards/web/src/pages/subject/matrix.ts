// What a subject could and did as one matrix: resource × verb. Namespaces in which it is the same are one row, and so are resources that
// nothing of was used.
import type { Answer, Schemas } from '../../api/ask';
import { whatOf } from '../../kit/request';

/** VERBS with a column of their own; every other one has its name in the last. */
export const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** Cell is one verb on one resource. */
export interface Cell {
  granted: boolean;
  /** used and refused count requests. */
  used: number;
  refused: number;
}

/** Line is a row of the matrix. */
export interface Line {
  key: string;
  /** what it is about: resources as kubectl has them, or paths. */
  what: string[];
  /** names of objects it is restricted to; none: all. */
  names: string[];
  /** where: namespaces; '' is the whole cluster. */
  where: string[];
  cells: Map<string, Cell>;
  state: State;
}

/** State of a row as a whole, and what a filter chooses. */
export type State = 'used' | 'unused' | 'refused';

type Use = Schemas['SubjectUse'];
type Rule = Schemas['HeldRule'];

interface Right {
  what: string;
  names: string[];
  verb: string;
  covers: (u: Use) => boolean;
}

/** rightsOf takes a rule apart. */
function rightsOf(rule: Rule): Right[] {
  const out: Right[] = [];
  const names = [...(rule.resourceNames ?? [])].sort();
  for (const verb of rule.verbs) {
    const does = (u: Use) => verb === '*' || u.verb === verb;
    for (const path of rule.nonResourceURLs ?? []) {
      out.push({ what: path, names: [], verb, covers: (u) => does(u) && u.path !== '' && (path === '*' || u.path === path || (path.endsWith('*') && u.path.startsWith(path.slice(0, -1)))) });
    }
    for (const resource of rule.resources ?? []) {
      for (const group of rule.apiGroups ?? ['']) {
        const [plain = '', sub = ''] = resource.split('/', 2);
        const covers = (u: Use) => does(u) && u.path === '' && (group === '*' || u.group === group) && (!names.length || names.includes(u.name)) &&
          (resource === '*' || resource === u.resource + (u.subresource && `/${u.subresource}`) || (plain === '*' && sub !== '' && sub === u.subresource));
        out.push({ what: whatOf({ group, resource: plain, subresource: sub }), names, verb, covers });
      }
    }
  }
  return out;
}

/** note says that a grant let a request through. What a wildcard grants has no row until it is used. */
function note(c: Cell, u: Use): void {
  c.granted = true;
  c.used += u.allowed;
}

/** matrixOf joins what a subject may do with what it did. */
export function matrixOf(rights: Answer<'can'> | undefined, doings: Answer<'subject'> | undefined): Line[] {
  const lines = new Map<string, Line>();
  const cell = (where: string, what: string, names: string[], verb: string): Cell => {
    const key = JSON.stringify([where, what, names]);
    let line = lines.get(key);
    if (!line) lines.set(key, (line = { key, what: [what], names, where: [where], cells: new Map(), state: 'unused' }));
    let c = line.cells.get(verb);
    if (!c) line.cells.set(verb, (c = { granted: false, used: 0, refused: 0 }));
    return c;
  };
  const uses = doings?.usage ?? [];
  const covered = new Set<Use>();
  for (const scope of rights?.scopes ?? []) {
    const here = scope.namespace ? uses.filter((u) => u.namespace === scope.namespace) : uses;
    const byVerb = new Map<string, Use[]>();
    for (const u of here) byVerb.set(u.verb, [...(byVerb.get(u.verb) ?? []), u]);
    for (const rule of scope.rules) {
      for (const right of rightsOf(rule)) {
        const c = cell(scope.namespace, right.what, right.names, right.verb);
        const first = !c.granted;
        c.granted = true;
        if (!first) continue; // two rules give the same: its requests count once
        for (const u of right.verb === '*' ? here : (byVerb.get(right.verb) ?? [])) {
          if (!u.allowed || !right.covers(u)) continue;
          c.used += u.allowed;
          covered.add(u);
          if (right.verb === '*') note(cell(scope.namespace, right.what, right.names, u.verb), u);
          if (right.what.includes('*') && u.path === '') note(cell(u.namespace, whatOf({ ...u, path: '' }), [], u.verb), u);
        }
      }
    }
  }
  for (const u of uses) {
    const what = whatOf(u);
    if (!u.forbidden && (!u.allowed || covered.has(u))) continue;
    const key = JSON.stringify([u.namespace, what, []]);
    const existing = lines.get(key) ?? lines.get(JSON.stringify(['', what, []]));
    const c = existing && (existing.where[0] === u.namespace || existing.cells.has(u.verb)) ? cell(existing.where[0] ?? '', what, [], u.verb) : cell(u.namespace, what, [], u.verb);
    c.refused += u.forbidden;
    if (!covered.has(u)) c.used += u.allowed; // allowed by a grant that is gone, or without one
  }
  for (const l of lines.values()) l.state = stateOf(l);
  return fold([...lines.values()]);
}

function stateOf(l: Line): State {
  const cells = [...l.cells.values()];
  return cells.some((c) => c.used) ? 'used' : cells.some((c) => c.refused) ? 'refused' : 'unused';
}

/** look is what two rows have to have in common to be one. */
function look(l: Line): string {
  return JSON.stringify([...l.cells].map(([verb, c]) => [verb, c.granted, c.used > 0, c.refused > 0]).sort());
}

function fold(all: Line[]): Line[] {
  const join = (lines: Line[], key: (l: Line) => string, into: (a: Line, b: Line) => void): Line[] => {
    const by = new Map<string, Line>();
    for (const l of lines) {
      const k = key(l);
      const there = by.get(k);
      if (!there) by.set(k, l);
      else {
        into(there, l);
        for (const [verb, c] of l.cells) {
          const sum = there.cells.get(verb);
          if (!sum) continue;
          sum.used += c.used;
          sum.refused += c.refused;
        }
      }
    }
    return [...by.values()];
  };
  const places = join(all, (l) => JSON.stringify([l.what, l.names, l.where[0] === '', look(l)]), (a, b) => (a.where = [...a.where, ...b.where].sort()));
  const whats = join(places, (l) => (l.state === 'unused' ? JSON.stringify([l.where, l.names, look(l)]) : l.key), (a, b) => (a.what = [...a.what, ...b.what].sort()));
  const order: State[] = ['used', 'refused', 'unused'];
  return whats.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || (a.what[0] ?? '').localeCompare(b.what[0] ?? '') || (a.where[0] ?? '').localeCompare(b.where[0] ?? ''));
}

/** totals counts rights and requests over all rows. */
export function totals(lines: Line[]): { granted: number; used: number; refused: number } {
  let [granted, used, refused] = [0, 0, 0];
  for (const l of lines) {
    const times = l.what.length * l.where.length;
    for (const c of l.cells.values()) {
      if (c.granted) granted += times;
      if (c.granted && c.used) used += times;
      if (c.refused) refused += times;
    }
  }
  return { granted, used, refused };
}
