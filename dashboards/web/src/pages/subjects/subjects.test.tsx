import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import Subjects from '.';
import { kindOf, ownOf, subjectsOf } from './queries';

const ask = (rows: unknown[][]) => ({
  cluster: 'c',
  question: 'subjects',
  columns: ['subject', 'requests', 'refused', 'accesses', 'first', 'last'],
  rows,
});
const T = '2026-11-20T11:30:00Z';
const weighed = { size: { apply: 1, remove: 2, rollback: 1 }, proof: { holds: true }, window: { requests: 4, judged: 3 } };
const suggest = {
  suggestions: [
    { subject: 'alice', groups: [['devs']], system: false, excess: { before: 10, after: 0, kept: 0, held: 40 }, ...weighed },
    { subject: 'system:serviceaccount:ci:idle', groups: [], system: false, excess: { before: 7, after: 0, kept: 0, held: 7 }, ...weighed },
  ],
  unseen: [{ subject: 'guest', bindings: ['RoleBinding/a/b'], excess: 5 }],
};
const dangers = [
  { id: 'cluster-admin', text: 'every verb on every resource' },
  { id: 'secrets-read', text: 'read Secrets' },
];
const holder = (kind: string, name: string, danger: string, ever: number, namespace = '') => ({
  kind,
  name,
  namespace,
  danger,
  ever,
  scope: '',
  users: [],
  system: false,
});
const FULL = {
  ...STANDING,
  suggest,
  ask: ask([
    ['alice', 12, 3, 4, T, T],
    ['system:serviceaccount:ci:idle', 1, 0, 1, T, T],
    ['system:node:n1', 99, 0, 4, T, T],
  ]),
  dangers: { dangers, holders: [holder('Group', 'devs', 'cluster-admin', 3), holder('ServiceAccount', 'idle', 'secrets-read', 0, 'ci')] },
};

describe('subjectsOf', () => {
  it('joins what is known, and says through which group a right comes', () => {
    const rows = subjectsOf({ uses: FULL.ask as never, excess: suggest as never, dangers: FULL.dangers as never });
    const of = (id: string) => rows.find((r) => r.id === id);
    expect(of('alice')).toMatchObject({
      requests: 12,
      refused: 3,
      held: 40,
      excess: 10,
      flags: [{ id: 'cluster-admin', through: 'devs', unused: true }],
    });
    expect(of('group:devs')).toMatchObject({ kind: 'group', flags: [{ id: 'cluster-admin', through: '', unused: false }] });
    expect(of('guest')).toMatchObject({ requests: 0, last: null, excess: 5 });
  });
  it('takes a right for unused where it was used in no namespace', () => {
    const at = (scope: string, ever: number) => ({ ...holder('User', 'bob', 'secrets-read', ever), scope });
    const unused = (holders: object[]) =>
      subjectsOf({ uses: undefined, excess: undefined, dangers: { dangers, holders } as never })[0]?.flags[0]?.unused;
    expect([unused([at('a', 0), at('b', 2)]), unused([at('a', 0), at('b', 0)])]).toEqual([false, true]);
  });
  it('lists a group of Kubernetes’ own that somebody else binds', () => {
    const of = (system: boolean) => {
      const holders = [{ ...holder('Group', 'system:serviceaccounts:ci', 'secrets-read', 0), system }];
      return subjectsOf({ uses: undefined, excess: undefined, dangers: { dangers, holders } as never })[0]?.own;
    };
    expect([of(true), of(false)]).toEqual([true, false]);
  });
  it('tells kinds by names', () => {
    expect(['alice', 'system:serviceaccount:a:b', 'system:node:n', 'system:apiserver', 'group:x'].map(kindOf)).toEqual([
      'user',
      'account',
      'node',
      'system',
      'group',
    ]);
    expect(['system:serviceaccount:kube-system:x', 'system:serviceaccount:ci:x', 'group:system:masters'].map(ownOf)).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('Subjects', () => {
  const names = () =>
    screen
      .getAllByRole('row')
      .slice(1)
      .map((r) => within(r).getAllByRole('cell')[0]?.textContent);
  it('lists the most dangerous first, and leaves out what is Kubernetes’ own', async () => {
    answers(FULL);
    show(<Subjects />, '#/subjects?cluster=c');
    await screen.findAllByText('cluster-admin', { selector: '[role=cell] *' });
    expect(names()).toEqual(['alice', 'devs', 'sa/ci:idle', 'guest']);
    expect(screen.getByRole('link', { name: 'alice' }).getAttribute('href')).toBe('#/subjects/alice?cluster=c');
  });
  it('keeps what is chosen in the address', async () => {
    answers(FULL);
    show(<Subjects />, '#/subjects?cluster=c&show=idle');
    await screen.findByText('secrets-read', { selector: '[role=cell] *' });
    expect(names()).toEqual(['sa/ci:idle']);
    await userEvent.click(screen.getByRole('link', { name: 'Clear' }));
    expect(location.hash).toBe('#/subjects?cluster=c');
    await userEvent.type(screen.getByLabelText('Name'), 'gue');
    expect(location.hash).toBe('#/subjects?cluster=c&q=gue');
    expect(names()).toEqual(['guest']);
  });
  it('shows the worst rights of a row, and the one that was asked for', async () => {
    const ids = ['escalate', 'bind', 'impersonate', 'rbac-write', 'node-proxy', 'pod-exec'];
    const kinds = ids.map((id) => ({ id, text: id }));
    answers({ ...FULL, dangers: { dangers: kinds, holders: ids.map((id) => holder('User', 'alice', id, 0)) } });
    show(<Subjects />, '#/subjects?cluster=c&flag=pod-exec');
    const more = await screen.findByText('and 2 more');
    expect(more.title).toBe('rbac-write, node-proxy');
    expect(more.parentElement?.textContent).toMatch(/^pod-exec unusedescalate unused/);
  });
  it('orders by a column', async () => {
    answers(FULL);
    show(<Subjects />, '#/subjects?cluster=c&system=yes');
    await screen.findByText('secrets-read', { selector: '[role=cell] *' });
    await userEvent.click(screen.getByRole('link', { name: 'Requests' }));
    expect(location.hash).toContain('sort=requests');
    expect(names()[0]).toBe('system:node:n1');
  });
  it('shows who made requests while the rest fails', async () => {
    answers({ ...FULL, suggest: new Failure('the policy is away\u202e', 500) });
    show(<Subjects />, '#/subjects?cluster=c');
    expect((await screen.findByRole('alert')).textContent).toContain('the policy is away\\u202e');
    expect(names()).toContain('alice');
  });
  it('says why there is nothing', async () => {
    answers({ ...STANDING, ask: ask([]), suggest: new Failure('no request', 404), dangers: { dangers: [], holders: [] } });
    show(<Subjects />, '#/subjects?cluster=c');
    expect(await screen.findByText(/no binding names anybody/)).toBeTruthy();
  });
  it('makes text of hostile names', async () => {
    answers({ ...FULL, ask: ask([[HOSTILE, 1, 1, 1, T, T]]) });
    const { container } = show(<Subjects />, '#/subjects?cluster=c');
    expect(await screen.findByText(/<img src=x onerror=alert\(1\)>\\u202e/)).toBeTruthy();
    expect(container.querySelector('#main img, [role=table] img')).toBeNull();
  });
});
