import { screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import Subject from '.';
import { matrixOf } from './matrix';

const T = '2026-11-20T11:30:00Z';
const use = (more: object) => ({ verb: 'get', group: '', resource: 'pods', subresource: '', namespace: '', name: '', path: '', requests: 1, allowed: 1, forbidden: 0, first: T, last: T, ...more });
const rule = (more: object) => ({ verbs: ['get'], apiGroups: [''], resources: ['pods'], by: [], ...more });
const doings = (usage: object[], more: object = {}) => ({ subject: 'alice', groups: [['devs']], groupsFrom: 'requests', first: T, last: T, requests: 5, forbidden: 1, drift: 0, usage, rules: [], ...more });
const rights = (scopes: object[]) => ({ subject: 'alice', groups: ['devs'], scopes, known: true, missing: [], superuser: false });
const lines = (scopes: object[], usage: object[]) => matrixOf(rights(scopes) as never, doings(usage) as never).map((l) => ({ what: l.what, where: l.where, names: l.names, cells: Object.fromEntries(l.cells) }));

describe('matrixOf', () => {
  it('folds namespaces that are equal, and keeps apart those that are not', () => {
    expect(lines([{ namespace: 'a', rules: [rule({})] }, { namespace: 'b', rules: [rule({})] }, { namespace: 'c', rules: [rule({})] }], [use({ namespace: 'c', allowed: 3 })])).toEqual([
      { what: ['pods'], where: ['c'], names: [], cells: { get: { granted: true, used: 3, refused: 0 } } },
      { what: ['pods'], where: ['a', 'b'], names: [], cells: { get: { granted: true, used: 0, refused: 0 } } },
    ]);
  });
  it('joins resources of which nothing was used', () => {
    expect(lines([{ namespace: '', rules: [rule({ resources: ['pods', 'secrets'] })] }], [])).toEqual([{ what: ['pods', 'secrets'], where: [''], names: [], cells: { get: { granted: true, used: 0, refused: 0 } } }]);
  });
  it('shows what was refused, and what was used and is not granted now', () => {
    expect(lines([], [use({ verb: 'delete', namespace: 'a', allowed: 0, forbidden: 2 }), use({ namespace: 'b', allowed: 4 })])).toEqual([
      { what: ['pods'], where: ['b'], names: [], cells: { get: { granted: false, used: 4, refused: 0 } } },
      { what: ['pods'], where: ['a'], names: [], cells: { delete: { granted: false, used: 0, refused: 2 } } },
    ]);
  });
  it('counts a use of the whole cluster’s grant wherever it was made, and one of a name only by rules for it', () => {
    expect(lines([{ namespace: '', rules: [rule({ resourceNames: ['x'] })] }], [use({ namespace: 'a', name: 'x' }), use({ namespace: 'a', name: 'y' })])).toMatchObject([
      { where: [''], names: ['x'], cells: { get: { used: 1 } } }, { where: ['a'], cells: { get: { granted: false, used: 1 } } },
    ]);
  });
  it('tells what was used of wildcards', () => {
    expect(lines([{ namespace: '', rules: [rule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })] }], [use({ namespace: 'a' })])).toMatchObject([
      { what: ['*.*'], cells: { '*': { granted: true, used: 1 }, get: { granted: true, used: 1 } } }, { what: ['pods'], where: ['a'], cells: { get: { granted: true, used: 1 } } },
    ]);
  });
  it('knows paths by their beginning', () => {
    expect(lines([{ namespace: '', rules: [{ verbs: ['get'], nonResourceURLs: ['/healthz/*'], by: [] }] }], [use({ resource: '', path: '/healthz/etcd' })])).toMatchObject([{ what: ['/healthz/*'], cells: { get: { used: 1 } } }]);
  });
});

const one = (subject: string) => ({
  subject, groups: [['devs']], system: false, seen: true, maturity: { learned: false, new: 0.2, since: T, lastNew: T, why: 'of 5 requests that its own roles allowed, 1 was the only one of its kind' }, window: { from: T, to: '2026-11-20T11:40:00Z', requests: 5, judged: 5, coverage: 1 }, excess: { before: 6, after: 0, kept: 0, held: 8 },
  proof: { holds: true, requests: 4, refused: 0, refusals: 1, newlyAllowed: 0 }, apply: [], remove: [], rollback: [], unused: [], keeps: [], added: [{ role: 'Role/a/r', verb: 'watch', resource: 'pods', reason: 'clients list and watch' }], owned: [], form: 'narrow', gaps: [], size: { apply: 2, remove: 1, rollback: 1 },
});
const FULL = (name: string) => ({
  ...STANDING, subject: doings([use({})], { rules: [{ binding: 'RoleBinding/a/b', role: 'Role/a/r', subject: 'Group/devs', rule: 0, own: false, scope: 'a', verbs: ['get'], requests: 0 }] }), can: rights([{ namespace: '', rules: [rule({ resources: ['pods', 'secrets'] })] }]),
  suggest: { read: T, suggestions: [one(name)], texts: { apply: 'kind: Role\n', remove: 'kubectl delete rolebinding/b -n a\n', rollback: 'kind: RoleBinding\n' } },
  histogram: { steps: [{ t: T, counts: [4], others: 0 }], values: ['allow'], stepSeconds: 60, countedFrom: T, countedTo: '2026-11-20T11:40:00Z' },
  findings: { findings: [], rules: {} }, lineage: { credentials: [{ credential: 'JTI=1', issue: null, users: [name], requests: 3, forbidden: 0, uses: [] }] },
  escalations: { paths: [] },
});

describe('Subject', () => {
  it('shows what it could and did, not by colour alone, and the server’s text', async () => {
    answers(FULL('alice'));
    show(<Subject name="alice" />, '#/subjects/alice?cluster=c&text=remove');
    expect(await screen.findByText('used 1 time')).toBeTruthy();
    expect(screen.getAllByText('granted, never used', { selector: '.unseen' }).length).toBeGreaterThan(0);
    expect((await screen.findByRole('region', { name: 'Remove' })).textContent).toContain('kubectl delete rolebinding/b -n a');
    expect(screen.getByText('never used')).toBeTruthy();
    expect(screen.getByText('JTI=1')).toBeTruthy();
  });
  it('says that nothing is known of a stranger, in the words of the server', async () => {
    answers({ ...STANDING, subject: new Failure('no such subject; did you mean alice?', 404), can: new Failure('unknown', 404), suggest: new Failure('unknown', 404) });
    show(<Subject name="alcie" />, '#/subjects/alcie?cluster=c');
    expect(await screen.findByText(/did you mean alice/)).toBeTruthy();
  });
  it('shows what is known where other things fail', async () => {
    answers({ ...FULL('alice'), can: new Failure('no policy', 500) });
    show(<Subject name="alice" />, '#/subjects/alice?cluster=c');
    expect(await screen.findByText(/What it may do is not known: no policy/)).toBeTruthy();
    expect(screen.getByText(/used 1 time, not granted now/)).toBeTruthy();
  });
  it('makes text of hostile names', async () => {
    answers(FULL(HOSTILE));
    const { container } = show(<Subject name={HOSTILE} />, '#/subjects/x?cluster=c');
    await screen.findByText('used 1 time');
    expect(container.querySelector('h1')?.textContent).toContain('<img src=x onerror=alert(1)>\\u202e');
    expect(container.querySelector('img')).toBeNull();
  });
});
