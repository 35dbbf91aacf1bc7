import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { filtersOf } from '../../kit/request';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import Today from '.';
import { keyed } from './links';
import { idleOf, newFrom } from './queries';

const T = '2026-11-20T11:50:00Z';
const use = {
  subject: 'alice',
  verb: 'list',
  group: '',
  resource: 'secrets',
  subresource: '',
  namespace: 'shop',
  name: '',
  path: '',
  requests: 3,
  allowed: 3,
  forbidden: 0,
  first: T,
  last: T,
};
const grant = {
  binding: 'RoleBinding/shop/readers',
  role: 'Role/shop/reader',
  subject: 'ServiceAccount/shop/bot',
  rule: 0,
  requests: 2,
  first: T,
  last: T,
};
const refusal = {
  ...use,
  subject: 'bob',
  requests: 7,
  namespaces: ['shop'],
  namespaceCount: 1,
  recorded: 'forbid',
  replayed: 'forbid',
  outcome: 'match',
  code: 403,
  cause: 'policy-change',
  text: 'RBAC allowed it until a change of the policy',
  auditID: 'r1',
  user: 'bob',
  missing: [],
};
const holder = {
  kind: 'ServiceAccount',
  namespace: 'ci',
  name: 'idle',
  danger: 'cluster-admin',
  scope: '',
  grants: [],
  requests: 0,
  ever: 0,
  last: null,
  users: [],
};
const dangers = [
  { id: 'cluster-admin', text: 'every verb on every resource', edges: [], holders: 2, unused: 1 },
  { id: 'secrets-read', text: 'read Secrets', edges: [], holders: 2, unused: 1 },
];
const write = { object: 'RoleBinding/shop/gone', what: 'deleted', verb: 'delete', user: 'carol', auditID: 'w1', notAfter: T };
const FULL = {
  ...STANDING,
  completeness: { apiservers: [], problems: [] },
  findings: {
    findings: [
      { id: 'f1', rule: 'a', title: 'A small thing', severity: 'low', subject: 'alice', last: T, count: 1 },
      { id: 'f2', rule: 'b', title: 'A grave thing', severity: 'critical', subject: 'bob', last: T, count: 1 },
    ],
    rules: { a: 1, b: 1 },
  },
  'first-uses': {
    baseline: 'enough',
    text: 'compared with what is stored since 11:00',
    since: T,
    uses: [use],
    grants: [grant],
    unnamed: 0,
  },
  refusals: {
    requests: 7,
    system: 0,
    known: true,
    missing: [],
    more: false,
    refusals: [refusal],
    changes: [{ write, requests: 7, subjects: ['bob'], refusals: [0] }],
  },
  dangers: {
    system: 0,
    at: T,
    known: true,
    missing: [],
    since: T,
    dangers,
    holders: [
      holder,
      { ...holder, name: 'busy', ever: 4 },
      { ...holder, danger: 'secrets-read', kind: 'Group', name: 'devs', namespace: '' },
    ],
    more: 0,
  },
  facets: { requests: 5, facets: [{ key: 'subject', values: [{ value: 'alice', requests: 5 }] }] },
};

const table = (name: string) => screen.findByRole('table', { name });
const lead = async (name: string) => (await table(name)).querySelector('a[data-row]')?.getAttribute('href');

describe('Today', () => {
  it('has a card for each question, and each leads on', async () => {
    const questions = answers(FULL);
    show(<Today />, '#/?cluster=c');
    expect(within(await table('Findings')).getAllByRole('row')[1]?.textContent).toContain('A grave thing');
    expect(await lead('Findings')).toBe('#/findings?cluster=c&finding=f2');
    const since = 'from=2026-11-20T11%3A40%3A00.000Z&to=2026-11-20T12%3A00%3A00.000Z';
    const address = await lead('New accesses');
    expect(address).toContain('#/explore?cluster=c');
    expect(address).toContain('subject=alice&verb=list&resource=secrets&q=namespace%3Dshop');
    expect(address).toContain(since);
    expect(await lead('New grants')).toContain('#/subjects/system%3Aserviceaccount%3Ashop%3Abot?cluster=c');
    expect(await lead('Changes that made refusals')).toBe('#/changes?cluster=c&id=w1');
    expect(await lead('Refusals')).toBe(
      '#/explore?cluster=c&subject=bob&verb=list&resource=secrets&q=namespace%3Dshop+code%3D403&decision=forbid',
    );
    expect(await lead('Dangerous and unused')).toBe('#/subjects?cluster=c&flag=cluster-admin&show=idle');
    expect(screen.getByRole('link', { name: 'sa/ci:idle' }).getAttribute('href')).toBe(
      '#/subjects/system%3Aserviceaccount%3Aci%3Aidle?cluster=c',
    );
    expect(screen.getByRole('link', { name: /devs/ }).getAttribute('href')).toBe('#/access?cluster=c&subject=group%3Adevs');
    expect(screen.queryByText(/ci:busy/)).toBeNull();
    expect(await lead('Who touched Secrets')).toBe('#/explore?cluster=c&resource=secrets&subject=alice');
    // The last third: nothing is from before all that is stored.
    expect(questions.some((q) => q.startsWith('first-uses?cluster=c&from=2026-11-20T11%3A40'))).toBe(true);
  });
  it('leads to as many refused requests as it counts, and says what is apart', async () => {
    answers({ ...FULL, dangers: { ...FULL.dangers, system: 3 } });
    show(<Today />, '#/?cluster=c');
    await table('Dangerous and unused');
    const figure = screen.getByRole('link', { name: /Refused requests/ });
    expect(figure.getAttribute('href')).toBe('#/explore?cluster=c&q=refused%3Dyes+system%3Dno');
    expect(screen.getByText(/system:masters may do everything/)).toBeTruthy();
  });
  it('waits', () => {
    answers(FULL);
    show(<Today />, '#/?cluster=c');
    expect(screen.queryAllByRole('table')).toHaveLength(0);
  });
  it('shows the refusals of one cause', async () => {
    answers({
      ...FULL,
      refusals: {
        ...FULL.refusals,
        refusals: [refusal, { ...refusal, subject: 'zoe', auditID: 'r2', cause: 'admission', plugin: 'PodSecurity' }],
      },
    });
    show(<Today />, '#/?cluster=c');
    await userEvent.click(await screen.findByRole('link', { name: 'admission 7' }));
    expect(location.hash).toBe('#/?cluster=c&cause=admission');
    expect(within(await table('Refusals')).getAllByRole('row')).toHaveLength(2);
  });
  it('says in the server’s words that there is nothing to compare with, and lists nothing as new', async () => {
    answers({
      ...FULL,
      'first-uses': {
        ...FULL['first-uses'],
        baseline: 'none',
        text: 'nothing is stored from before: everything since would be new',
        uses: [],
        grants: [],
      },
    });
    show(<Today />, '#/?cluster=c&from=2026-11-20T10:00:00Z&to=2026-11-20T12:00:00Z');
    expect(await screen.findByText(/everything since would be new/)).toBeTruthy();
    expect(screen.queryByRole('table', { name: 'New accesses' })).toBeNull();
    expect(screen.queryByText(/Nobody did anything/)).toBeNull();
  });
  it('says of each card why there is nothing', async () => {
    answers({
      ...FULL,
      findings: { findings: [], rules: {} },
      'first-uses': { ...FULL['first-uses'], uses: [], grants: [] },
      refusals: { ...FULL.refusals, requests: 0, refusals: [], changes: [] },
      dangers: { ...FULL.dangers, holders: [] },
      facets: { requests: 0, facets: [] },
    });
    show(<Today />, '#/?cluster=c');
    for (const said of [/found nothing/, /not known from before/, /Nobody was refused/, /has used it/, /Nobody asked for Secrets/])
      expect(await screen.findByText(said)).toBeTruthy();
  });
  it('fails card by card', async () => {
    answers({ ...FULL, refusals: new Failure('the store is tired\u202e', 500), dangers: new Failure('no policy', 500) });
    show(<Today />, '#/?cluster=c');
    expect(await screen.findByText(/the store is tired\\u202e/)).toBeTruthy();
    expect(await screen.findByText('no policy')).toBeTruthy();
    expect(await table('Findings')).toBeTruthy();
  });
  it('makes text of hostile names', async () => {
    answers({
      ...FULL,
      'first-uses': {
        ...FULL['first-uses'],
        uses: [{ ...use, subject: HOSTILE, resource: HOSTILE, namespace: HOSTILE }],
        grants: [{ ...grant, binding: HOSTILE, subject: `User/${HOSTILE}` }],
      },
      refusals: {
        ...FULL.refusals,
        refusals: [{ ...refusal, subject: HOSTILE, verb: HOSTILE, plugin: HOSTILE, text: HOSTILE }],
        changes: [{ write: { ...write, object: HOSTILE, user: HOSTILE }, requests: 1, subjects: [], refusals: [] }],
      },
      dangers: { ...FULL.dangers, holders: [{ ...holder, kind: 'User', name: HOSTILE }] },
      facets: { requests: 1, facets: [{ values: [{ value: HOSTILE, requests: 1 }] }] },
    });
    const { container } = show(<Today />, '#/?cluster=c');
    await table('Who touched Secrets');
    await table('Refusals');
    expect(container.querySelector('img')).toBeNull();
    expect(container.textContent).not.toContain('\u202e');
  });
});

describe('what the cards are made of', () => {
  it('compares a part of what is stored with what was before', () => {
    const range = { name: 'all', from: '2026-11-01T00:00:00Z', to: '2026-11-20T00:00:00Z' };
    expect(newFrom(range, range.from)).toBe('2026-11-19T00:00:00.000Z');
    expect(newFrom({ ...range, name: 'fixed' }, range.from)).toBe(range.from);
    expect(newFrom({ ...range, from: '2026-11-10T00:00:00Z', name: '7d' }, range.from)).toBe('2026-11-10T00:00:00Z');
  });
  it('counts who holds something in several namespaces once, and not where it was used in one', () => {
    const at = (scope: string, ever: number, name: string) => ({ ...holder, scope, ever, name });
    const idle = idleOf({ ...FULL.dangers, holders: [at('a', 0, 'x'), at('b', 0, 'x'), at('a', 0, 'y'), at('b', 1, 'y')] } as never);
    expect(idle.map((d) => [d.id, d.holders.map((h) => h.name)])).toEqual([['cluster-admin', ['x']]]);
  });
  it('selects requests as one was, without what is folded', () => {
    expect(filtersOf({ ...use, resource: '', namespace: '', path: '/apis/*' })).toMatchObject({ q: 'path^=/apis/' });
    expect(filtersOf({ ...use, resource: '', namespace: '', path: '(other)' })).toMatchObject({ q: 'resource=' });
    expect(filtersOf({ ...use, name: 'a b', group: 'apps', namespace: 'x-*' })).toMatchObject({ q: 'apiGroup=apps name="a b"' });
    expect(keyed('ServiceAccount/a/b')).toEqual({ kind: 'ServiceAccount', namespace: 'a', name: 'b' });
    expect(keyed('User/a/b')).toEqual({ kind: 'User', name: 'a/b' });
  });
});
