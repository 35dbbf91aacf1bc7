import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { Failure } from '../../api/ask';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import Changes from '.';
import { barsOf } from './words';

const write = (auditID: string, more: object = {}) => ({
  auditID, user: 'erin', time: '2026-11-20T11:30:00.5Z', verb: 'delete', object: `RoleBinding/shop/${auditID}`,
  code: 200, effect: 'yes', ...more,
});
const refused = (subject: string) => ({
  subject, verb: 'get', group: 'apps', resource: 'deployments', subresource: 'scale', path: '', namespaces: ['shop'], namespaceCount: 1,
  requests: 3,
  first: '2026-11-20T11:31:00Z', last: '2026-11-20T11:32:00Z', recorded: 'forbid', replayed: 'forbid', outcome: 'match', code: 403,
  cause: 'policy-change', text: 'RBAC allowed it until a change of the policy', auditID: 'refused-1', user: subject, name: '', missing: [],
});
const used = (subject: string) => ({
  subject, verb: 'list', group: '', resource: 'pods', subresource: '', namespace: 'shop', name: '', path: '',
  requests: 2, allowed: 2, forbidden: 0,
  first: '2026-11-20T11:33:00Z', last: '2026-11-20T11:34:00Z',
});
const rule = { verbs: ['get'], apiGroups: ['apps'], resources: ['deployments/scale'], by: [], because: [] };
const lost = (rules: number) => ({ namespace: 'shop', gained: [], lost: Array.from({ length: rules }, () => rule) });
const access = (name: string, rules = 1) => ({
  known: true, missingBefore: [], missingAfter: [], more: 0,
  subjects: [{ kind: 'ServiceAccount', namespace: 'shop', name, scopes: [lost(rules)] }],
});
const list = (...changes: object[]) => ({ cluster: 'c', known: true, more: false, changes });
const none = { cluster: 'c', known: true, requests: 0, system: 0, lookedBackTo: null, missing: [], refusals: [], more: false, changes: [] };
const detail = {
  access: access('web'), until: '2026-11-20T12:30:00.5Z', refusals: [refused('bob')], otherRefusals: 4, firstUses: [used('bob')],
  more: false, revert: { text: '', warnings: [], objects: [], more: 0 },
};
const BASE = { ...STANDING, refusals: none };
const rows = () => within(screen.getByRole('table', { name: 'Writes' })).getAllByRole('row').slice(1);

describe('Changes', () => {
  it('lists who wrote what, and whether it changed access, in words', async () => {
    answers({ ...BASE, 'policy-changes': list(write('a'), write('b', { effect: 'no', user: '', auditID: undefined })) });
    show(<Changes />, '#/changes?cluster=c');
    await screen.findByRole('table', { name: 'Writes' });
    expect(rows()[0]?.textContent).toMatch(/erin.*delete.*RoleBinding\/shop\/a.*Access changed/);
    expect(rows()[1]?.textContent).toMatch(/no request stored.*No access changed/);
    const link = within(rows()[0] as HTMLElement).getByRole('link', { name: 'RoleBinding/shop/a' });
    expect(link.getAttribute('href')).toBe('#/changes?cluster=c&id=a');
  });
  it('gives the write that is opened the focus, and the list when it is closed', async () => {
    answers({ ...BASE, 'policy-changes': { ...list(write('z'), write('a')), detail } });
    show(<main id="main"><Changes /></main>, '#/changes?cluster=c');
    await userEvent.click(await screen.findByRole('link', { name: 'RoleBinding/shop/a' }));
    await screen.findByText('Access gained and lost');
    const card = screen.getByText('What came of it').closest('[tabindex="-1"]');
    expect(document.activeElement).toBe(card);
    await userEvent.keyboard('{Escape}');
    expect(location.hash).toBe('#/changes?cluster=c');
    await vi.waitFor(() => expect(document.activeElement?.textContent).toBe('RoleBinding/shop/a'));
  });
  it('filters by what the address says', async () => {
    const by = { user: 'system:serviceaccount:ci:runner' };
    answers({ ...BASE, 'policy-changes': list(write('a'), write('b', by), write('c', { ...by, effect: 'no' })) });
    show(<Changes />, '#/changes?cluster=c&effect=yes&author=sa/ci:runner');
    expect(await screen.findByText('1 of 3 writes, the newest first')).toBeTruthy();
    expect(rows()[0]?.textContent).toContain('RoleBinding/shop/b');
    await userEvent.type(screen.getByLabelText('Object'), 'nothing');
    expect(await screen.findByText('No write among these matches the filters.')).toBeTruthy();
    expect(location.hash).toContain('object=nothing');
  });
  it('asks for older writes, without saying one twice', async () => {
    const asked = answers({ ...BASE, 'policy-changes': { ...list(write('a')), more: true } });
    show(<Changes />, '#/changes?cluster=c');
    await screen.findByText('the newest 1 writes, the newest first');
    const older = () => asked.filter((q) => q.startsWith('policy-changes') && q.includes('to=2026-11-20T11%3A30%3A00.501Z'));
    await vi.waitFor(() => expect(older()).toHaveLength(1));
    expect(rows()).toHaveLength(1);
  });
  it('says what came of a write, and leads to the requests', async () => {
    answers({ ...BASE, 'policy-changes': { ...list(write('a')), detail } });
    show(<Changes />, '#/changes?cluster=c&id=a');
    expect(await screen.findByText('− lost')).toBeTruthy();
    const href = (name: RegExp | string) => screen.getByRole('link', { name }).getAttribute('href');
    expect(href('The request')).toBe('#/events/a?cluster=c');
    expect(href('Access before and after')).toBe('#/access?cluster=c&since=2026-11-20T11%3A30%3A00.499Z&at=2026-11-20T11%3A30%3A00.501Z');
    expect(href('get deployments.apps/scale')).toBe('#/changes?cluster=c&id=a&why=refused-1');
    expect(href('list pods')).toContain('#/explore?cluster=c&subject=bob&verb=list&resource=pods&q=namespace%3Dshop&from=2026-11-20');
    expect(screen.getByText('Refused for other reasons: 4 requests of those concerned.')).toBeTruthy();
    expect(href('Close')).toBe('#/changes?cluster=c');
    expect(screen.queryByText('What if it were deleted?')).toBeNull();
  });
  it('shows how to take a write back as the server wrote it, and what that undoes besides', async () => {
    const text = "# reverts: delete\nkubectl apply --server-side -f - <<'EOF'\nkind: RoleBinding\nEOF\n";
    const warnings = ['RoleBinding/shop/a was changed 1 time after that: reverting undoes that as well'];
    answers({ ...BASE, 'policy-changes': { ...list(write('a', { verb: 'update' })), detail: { ...detail, revert: { text, warnings, objects: [], more: 0 } } } });
    show(<Changes />, '#/changes?cluster=c&id=a');
    expect((await screen.findByRole('region', { name: 'Commands that revert it' })).textContent).toBe(text);
    expect(screen.getByText(/reverting undoes that as well\./)).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Save revert-a.sh' })).toBeTruthy();
    expect(screen.getByRole('link', { name: 'What if it were deleted?' }).getAttribute('href')).toContain('#/whatif?cluster=c&delete=');
  });
  it('says that there is nothing to take back', async () => {
    answers({ ...BASE, 'policy-changes': { ...list(write('a')), detail } });
    show(<Changes />, '#/changes?cluster=c&id=a');
    expect(await screen.findByText(/There is nothing to take back/)).toBeTruthy();
  });
  it('cuts what is long, and leads to the rest', async () => {
    const long = { ...detail, access: access('web', 20), firstUses: Array.from({ length: 20 }, () => used('bob')) };
    answers({ ...BASE, 'policy-changes': { ...list(write('a')), detail: long } });
    show(<Changes />, '#/changes?cluster=c&id=a');
    const rest = await screen.findByRole('link', { name: 'and 14 more rules' });
    expect(rest.getAttribute('href')).toContain('subject=system%3Aserviceaccount%3Ashop%3Aweb');
    expect(screen.getByText('8 more first uses')).toBeTruthy();
  });
  it('says that nothing is known of a write', async () => {
    const nothing = { ...detail, access: null, refusals: [], firstUses: [], otherRefusals: 0 };
    answers({ ...BASE, 'policy-changes': { ...list(write('a', { effect: 'unknown', code: 503 })), detail: nothing } });
    show(<Changes />, '#/changes?cluster=c&id=a');
    expect(await screen.findByText('No object is known to have changed.')).toBeTruthy();
    expect(screen.getByText(/answered 503: it may not have been done/)).toBeTruthy();
    expect(screen.getByText('Nothing was refused for it.')).toBeTruthy();
  });
  it('names the writes that made refusals', async () => {
    const by = { object: 'Role/shop/r', what: 'deleted', notAfter: '2026-11-20T11:30:00Z', auditID: 'a', verb: 'delete', user: 'erin' };
    const made = { write: by, requests: 91, subjects: ['bob'], refusals: [0] };
    answers({ ...STANDING, refusals: { ...none, changes: [made] }, 'policy-changes': list() });
    show(<Changes />, '#/changes?cluster=c');
    const table = await screen.findByRole('table', { name: 'Refusals by change' });
    expect(within(table).getByRole('link', { name: 'Role/shop/r' }).getAttribute('href')).toBe('#/changes?cluster=c&id=a');
    expect(table.textContent).toContain('91');
  });
  it('waits, and says why there is nothing', async () => {
    answers({ ...BASE, 'policy-changes': list() });
    show(<Changes />, '#/changes?cluster=c');
    expect((await screen.findAllByRole('status', { name: 'Loading' })).length).toBeGreaterThan(0);
    expect(await screen.findByText('Nobody wrote a role or a binding in this range.')).toBeTruthy();
    expect(await screen.findByText('No refusal of this range was made by a change of policy.')).toBeTruthy();
  });
  it('fails in the words of the server', async () => {
    const gone = new Failure('no stored request with the audit ID', 404);
    answers({ ...STANDING, refusals: new Failure('the store failed', 400), 'policy-changes': gone });
    show(<Changes />, '#/changes?cluster=c&id=x');
    await screen.findByText('the store failed');
    expect((await screen.findAllByText('no stored request with the audit ID')).length).toBeGreaterThan(1);
  });
  it('makes text of hostile names', async () => {
    const hostile = { ...detail, access: access(HOSTILE), refusals: [refused(HOSTILE)], firstUses: [used(HOSTILE)] };
    const by = { user: HOSTILE, object: HOSTILE, verb: HOSTILE, effect: HOSTILE };
    answers({ ...BASE, 'policy-changes': { ...list(write('a', by)), detail: hostile } });
    const { container } = show(<Changes />, '#/changes?cluster=c&id=a');
    await screen.findByText('− lost');
    expect(container.querySelector('img')).toBeNull();
    expect(screen.getAllByText(/<img src=x onerror=alert\(1\)>\\u202e/).length).toBeGreaterThan(4);
  });
});

describe('barsOf', () => {
  it('counts writes by time and effect', () => {
    const early = write('c', { effect: 'no', time: '2026-11-20T11:00:00Z' });
    const bars = barsOf([write('a'), write('b'), early], '2026-11-20T11:00:00Z', '2026-11-20T12:00:00Z');
    expect(bars.seconds).toBe(60);
    expect(bars.values).toEqual({ yes: [0, 2], no: [1, 0], unknown: [0, 0] });
  });
});
