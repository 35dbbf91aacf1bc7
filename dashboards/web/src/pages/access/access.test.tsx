import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import Access from '.';
import { joined } from './Holders';

const grant = { binding: 'ClusterRoleBinding/b', role: 'ClusterRole/r', subject: 'User/alice', rule: 0 };
const holder = (name: string, scope = 'cluster') => ({ kind: 'User', name, namespace: '', scope, grants: [grant] });
const whoCan = (...subjects: object[]) => ({ verb: 'get', resource: 'secrets', group: '', subresource: '', namespace: '', name: '', path: '', known: true, missing: [], hints: [], subjects });
const BASE = { ...STANDING, complete: { kind: 'verb', values: [{ value: 'get', requests: 1 }] }, changes: { writes: [{ object: 'Role/a/r', what: 'written', notAfter: '2026-11-20T11:30:00Z' }], subjects: [], known: true } };

describe('joined', () => {
  it('says who gained and who lost', () => {
    const list = joined(whoCan(holder('alice'), holder('bob')) as never, whoCan(holder('alice'), holder('carol', 'namespace:a')) as never);
    expect(list.map((h) => [h.name, h.where, h.change])).toEqual([['bob', '', 'gained'], ['carol', 'a', 'lost'], ['alice', '', '']]);
  });
});

describe('Access', () => {
  it('asks as a sentence, and keeps the question in the address', async () => {
    const asked = answers({ ...BASE, 'who-can': whoCan(holder('alice'), holder('bob', 'namespace:shop')) });
    show(<Access />, '#/access?cluster=c');
    await userEvent.type(await screen.findByLabelText('Verb'), 'get');
    await userEvent.type(screen.getByLabelText('Resource or path'), 'secrets{Enter}');
    expect(location.hash).toBe('#/access?cluster=c&verb=get&resource=secrets');
    expect(await screen.findByText('2 subjects')).toBeTruthy();
    const rows = within(screen.getByRole('table', { name: 'Who can' })).getAllByRole('row');
    expect(rows[2]?.textContent).toContain('shop');
    expect(asked.some((q) => q.startsWith('who-can') && q.includes('allNamespaces=true'))).toBe(true);
  });
  it('shows the same as a map', async () => {
    answers({ ...BASE, 'who-can': whoCan(holder('alice'), holder('bob', 'namespace:shop')) });
    show(<Access />, '#/access?cluster=c&verb=get&resource=secrets&view=map');
    expect(within(await screen.findByRole('table', { name: 'Who can, by namespace' })).getAllByRole('row')).toHaveLength(3);
  });
  it('asks about a path without a namespace', async () => {
    const asked = answers({ ...BASE, 'who-can': whoCan(holder('alice')) });
    show(<Access />, '#/access?cluster=c&verb=get&path=%2Fmetrics');
    await screen.findByText('1 subject');
    expect(asked.find((q) => q.startsWith('who-can'))).not.toContain('allNamespaces');
  });
  it('fails in the words of the server', async () => {
    answers({ ...BASE, 'who-can': new Failure('verb gte: did you mean get?', 400) });
    show(<Access />, '#/access?cluster=c&verb=gte&resource=secrets');
    expect((await screen.findByRole('alert')).textContent).toContain('did you mean get?');
  });
  it('says what changed for everybody between two moments', async () => {
    answers({ ...BASE, changes: { ...BASE.changes, subjects: [{ kind: 'User', name: 'alice', namespace: '', scopes: [{ namespace: 'a', gained: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], by: [], because: ['Role/a/r'] }], lost: [] }] }] } });
    show(<Access />, '#/access?cluster=c&since=2026-11-20T11:10:00Z');
    expect(await screen.findByText('+ gained')).toBeTruthy();
    expect(screen.getByRole('slider', { name: 'Compared with' })).toBeTruthy();
  });
  it('draws every change of policy, and counts together what is older than it lists', async () => {
    const change = (n: number) => ({ auditID: `w${n}`, user: 'u', verb: 'update', object: 'Role/a/r', code: 200, effect: 'yes', time: new Date(Date.parse('2026-11-20T11:50:00Z') - n * 1000).toISOString() });
    let n = 0;
    const asked = answers({ ...BASE, get 'policy-changes'() { return { cluster: 'c', known: true, more: true, changes: [change(n++)] }; },
      histogram: { cluster: 'c', stepSeconds: 60, split: '', values: [], steps: [{ t: '2026-11-20T11:20:00Z', counts: [], others: 7 }, { t: '2026-11-20T11:21:00Z', counts: [], others: 0 }] } });
    const { container } = show(<Access />, '#/access?cluster=c');
    expect(await screen.findByText('The newest 4 moments at which the policy changed; of 7 older writes only about when', {}, { timeout: 5000 })).toBeTruthy();
    expect(container.querySelectorAll('svg path').length).toBeGreaterThan(1);
    expect(decodeURIComponent(asked.find((q) => q.startsWith('histogram')) ?? '')).toContain('resource=clusterrolebindings');
  });
  it('answers what somebody can do, nobody’s rights included', async () => {
    answers({ ...BASE, can: { subject: 'alice', groups: ['devs'], scopes: [], known: true, missing: [], hints: ['it is a stranger'], superuser: false } });
    show(<Access />, '#/access?cluster=c&subject=alice');
    expect(await screen.findByText('No rule applies to it.')).toBeTruthy();
    expect(screen.getByText('it is a stranger')).toBeTruthy();
  });
  it('makes text of hostile names, in completions too', async () => {
    answers({ ...BASE, complete: { kind: 'verb', values: [{ value: HOSTILE, requests: 1 }] }, 'who-can': whoCan(holder(HOSTILE)) });
    const { container } = show(<Access />, '#/access?cluster=c&verb=get&resource=secrets');
    await screen.findByText('1 subject');
    await userEvent.click(screen.getByLabelText('Verb'));
    expect(container.querySelector('img')).toBeNull();
    expect(screen.getByText(/<img src=x onerror=alert\(1\)>\\u202e/)).toBeTruthy();
  });
});
