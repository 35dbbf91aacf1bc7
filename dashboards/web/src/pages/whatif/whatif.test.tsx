import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { forgetDraft, keepDraft, markOf } from '../../kit/draft';
import { answers } from '../../kit/testing/answers';
import { HOSTILE, show, STANDING } from '../../kit/testing/page';
import WhatIf from '.';
import { latestOf, lineOf, placeOf, type Access, type Drafted } from './words';

const grant = { binding: 'ClusterRoleBinding/b', role: 'ClusterRole/r', subject: 'User/alice', rule: 0 };
const access = (of: Partial<Access>): Access => ({
  source: 'rbac', subject: 'alice', groups: ['devs'], verb: 'get', apiGroup: 'apps', resource: 'deployments', subresource: 'scale', namespace: 'shop', class: 'REVOKED', count: 3, allowed: 3, refused: 0,
  first: '2026-11-20T11:10:00Z', last: '2026-11-20T11:50:00Z', before: [grant], after: [], because: ['ClusterRoleBinding/b'], sample: ['id-1', 'id-2'], ...of,
});
const NONE = { revoked: 0, gained: 0, maybe_revoked: 0, maybe_gained: 0, unknown: 0, unchanged: 0 };
const answer = (of: Partial<Drafted> = {}): Drafted => ({
  cluster: 'c', summary: { ...NONE, unchanged: 4 }, requests: { ...NONE, unchanged: 40 }, accesses: [], more: 0, unjudged: {}, unreadable: 0, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z',
  escalation: { opened: [], closed: [], openedCount: 0, closedCount: 0 }, possible: [], morePossible: 0, changes: [{ object: 'ClusterRoleBinding/b', what: 'deleted' }], notes: [], ...of,
});
const BREAKS = answer({
  summary: { ...NONE, revoked: 2, gained: 1, unchanged: 4 }, requests: { ...NONE, revoked: 12, gained: 1, unchanged: 40 },
  accesses: [access({ class: 'GAINED', subject: 'carol', verb: 'list', count: 1, before: [], after: [grant], sample: [] }), access({ count: 3, last: '2026-11-20T11:58:00Z', subject: 'bob' }), access({ count: 9 })],
});
const BASE = { ...STANDING, complete: { kind: 'binding', values: [{ value: 'old-admins', kind: 'ClusterRoleBinding', requests: 0 }], more: false } };
const posted = (asked: string[]) => asked.filter((q) => q.startsWith('whatif ')).map((q) => JSON.parse(q.slice(7)) as Record<string, unknown>);

afterEach(() => {
  sessionStorage.clear();
  forgetDraft();
});

describe('placeOf', () => {
  it('says where in the form an error belongs', () => {
    expect(placeOf(400, 'a.yaml:4: kind "X" is none', ['a.yaml'], [])).toEqual({ at: 'draft', file: 'a.yaml', line: 4, text: 'kind "X" is none' });
    expect(placeOf(400, 'a.yaml: line 7: did not find', ['a.yaml'], [])).toEqual({ at: 'draft', file: 'a.yaml', line: 7, text: 'did not find' });
    expect(placeOf(400, 'a: b: it holds no object', ['a', 'a: b'], [])).toEqual({ at: 'draft', file: 'a: b', line: 0, text: 'it holds no object' });
    expect(placeOf(400, 'there is no Role/a/b to delete', ['a.yaml'], ['Role/a/b']).at).toBe('delete');
    expect(placeOf(404, 'no request of "alcie" is recorded', [], []).at).toBe('subject');
    expect(placeOf(404, 'no policy of this cluster is known', [], ['Role/a/b']).at).toBe('none');
    expect(placeOf(500, 'a.yaml:4: x', ['a.yaml'], []).at).toBe('none');
  });
  it('finds a line', () => {
    expect(lineOf('a\nbc\n', 2)).toEqual([2, 4]);
    expect(lineOf('a', 9)).toEqual([0, 1]);
  });
  it('finds who was last', () => {
    expect(latestOf(BREAKS.accesses, 'REVOKED')).toMatchObject({ subjects: 2, access: { subject: 'bob' } });
    expect(latestOf([], 'REVOKED')).toBeNull();
  });
});

describe('WhatIf', () => {
  it('asks about an object to delete, and says what would break, the worst first', async () => {
    const asked = answers({ ...BASE, whatif: BREAKS });
    show(<WhatIf />, '#/whatif?cluster=c');
    await userEvent.type(await screen.findByLabelText('Objects to delete'), 'ClusterRoleBinding/b{Enter}');
    expect(location.hash).toBe('#/whatif?cluster=c&delete=ClusterRoleBinding%2Fb');
    expect((await screen.findByText('2 accesses that were used would be refused')).closest('li')?.textContent).toMatch(/12 requests of 2 subjects, the last 2026-11-20 11:58:00 · 2 min ago by bob/);
    expect(posted(asked)).toEqual([{ cluster: 'c', delete: ['ClusterRoleBinding/b'] }]);
    const rows = within(screen.getByRole('table', { name: 'Accesses that change' })).getAllByRole('row').slice(1).map((r) => r.textContent);
    expect(rows.map((r) => r?.match(/alice|bob|carol/)?.[0])).toEqual(['alice', 'bob', 'carol']);
    expect(rows[0]).toContain('deployments.apps/scale');
    expect(screen.getAllByRole('link', { name: 'Request 1 that asked for it' })[0]?.getAttribute('href')).toContain('why=id-1');
    expect(screen.getByText('1 access that was refused would be allowed', { exact: false })).toBeTruthy();
  });
  it('keeps a draft out of the address, and asks with it', async () => {
    const asked = answers({ ...BASE, whatif: answer() });
    show(<WhatIf />, '#/whatif?cluster=c&range=15m');
    await userEvent.click(await screen.findByLabelText('Manifests to apply'));
    await userEvent.paste('kind: Role # secret');
    await userEvent.click(screen.getByRole('button', { name: 'Ask what it would break' }));
    expect(await screen.findByText('Nothing that was used would be refused')).toBeTruthy();
    expect(location.hash).toContain('draft=' + markOf([{ name: 'draft.yaml', text: 'kind: Role # secret' }]));
    expect(location.hash).not.toContain('secret');
    expect(asked.filter((q) => !q.startsWith('whatif')).join('')).not.toContain('secret');
    expect(posted(asked)[0]).toEqual({ cluster: 'c', draft: { 'draft.yaml': 'kind: Role # secret' }, from: '2026-11-20T11:45:00.000Z', to: '2026-11-20T12:00:00.000Z' });
    expect(sessionStorage.getItem('retrial.draft')).toContain('secret');
    expect(screen.getByText('ask everything stored').getAttribute('href')).not.toContain('range');
  });
  it('takes files, and drops what is not text', async () => {
    answers({ ...BASE, whatif: answer() });
    show(<WhatIf />, '#/whatif?cluster=c');
    const choose = await screen.findByLabelText('Choose files');
    await userEvent.upload(choose, [new File(['kind: Role'], 'a.yaml'), new File(['kind: ClusterRole'], 'b.yaml')]);
    expect(await screen.findByDisplayValue('kind: ClusterRole')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'a.yaml' }));
    expect(screen.getByDisplayValue('kind: Role')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Remove a.yaml' }));
    expect(screen.queryByRole('button', { name: 'a.yaml' })).toBeNull();
    fireEvent.drop(screen.getByRole('form'), { dataTransfer: { types: ['Files'], files: [new File(['a\0b'], 'c.yaml')] } });
    expect(await screen.findByText(/c.yaml is not text/)).toBeTruthy();
  });
  it('tells what is wrong where it is written, and leads to the line', async () => {
    const text = '# x\nkind: Rol\n';
    const mark = keepDraft([{ name: 'a.yaml', text }]);
    answers({ ...BASE, whatif: new Failure('a.yaml:2: kind "Rol" is none of Role; did you mean Role?', 400) });
    show(<WhatIf />, `#/whatif?cluster=c&draft=${mark}`);
    expect(await screen.findByText(/Line 2: kind "Rol" is none/)).toBeTruthy();
    const area = screen.getByLabelText<HTMLTextAreaElement>('Manifests to apply');
    expect(area.getAttribute('aria-invalid')).toBe('true');
    await userEvent.click(screen.getByRole('button', { name: 'Go to line 2' }));
    await waitFor(() => expect(text.slice(area.selectionStart, area.selectionEnd)).toBe('kind: Rol'));
    expect(screen.queryByRole('heading', { name: 'What it would break' })).toBeNull();
  });
  it('does not ask about another draft than the address does', async () => {
    keepDraft([{ name: 'a.yaml', text: 'kind: Role' }]);
    const asked = answers({ ...BASE, whatif: answer() });
    show(<WhatIf />, '#/whatif?cluster=c&draft=another&delete=Role%2Fa%2Fb');
    expect(await screen.findByText(/in another tab/)).toBeTruthy();
    expect(posted(asked)).toEqual([]);
  });
  it('says what to do where nothing is drafted', async () => {
    const asked = answers({ ...BASE, whatif: answer() });
    show(<WhatIf />, '#/whatif?cluster=c');
    await userEvent.click(await screen.findByRole('button', { name: 'Ask what it would break' }));
    expect((await screen.findByText(/Nothing is drafted/)).closest('[role=alert]')).toBeTruthy();
    expect(posted(asked)).toEqual([]);
  });
  it('fails in the words of the server, and asks again', async () => {
    answers({ ...BASE, whatif: new Failure('the store took too long', 504) });
    show(<WhatIf />, '#/whatif?cluster=c&delete=Role%2Fa%2Fb');
    expect(await screen.findByText('the store took too long')).toBeTruthy();
    answers({ ...BASE, whatif: answer() });
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('Nothing that was used would be refused')).toBeTruthy();
  });
  it('says that nobody asked, where nobody did', async () => {
    answers({ ...BASE, whatif: answer({ summary: NONE, requests: NONE }) });
    show(<WhatIf />, '#/whatif?cluster=c&delete=Role%2Fa%2Fb&range=15m');
    expect(await screen.findByText('Nobody whom it concerns asked for anything')).toBeTruthy();
    expect(screen.getByText('Ask everything stored')).toBeTruthy();
  });
  it('completes objects by kind and name', async () => {
    answers({ ...BASE, whatif: answer() });
    show(<WhatIf />, '#/whatif?cluster=c');
    await userEvent.type(await screen.findByLabelText('Objects to delete'), 'clusterrolebinding/old');
    await waitFor(() => expect(document.querySelector('datalist option')?.getAttribute('value')).toBe('ClusterRoleBinding/old-admins'));
    await userEvent.click(screen.getByRole('button', { name: 'Add' }));
    await userEvent.click(screen.getByRole('button', { name: 'Keep clusterrolebinding/old' }));
    expect(screen.queryByRole('list', { name: 'To be deleted' })).toBeNull();
  });
  it('copies the question as a command', async () => {
    answers({ ...BASE, whatif: BREAKS });
    const user = userEvent.setup();
    show(<WhatIf />, '#/whatif?cluster=c&delete=ClusterRoleBinding%2Fit%27s&subject=sa%2Fci%3Adeployer');
    await user.click(await screen.findByRole('button', { name: 'Copy as command' }));
    expect(await navigator.clipboard.readText()).toBe(String.raw`retrial whatif --cluster c --delete 'ClusterRoleBinding/it'\''s' --subject sa/ci:deployer`);
  });
  it('shows hostile strings as text, escalations and what becomes possible', async () => {
    const node = { kind: 'User', namespace: '', name: HOSTILE };
    const rule = { verbs: [HOSTILE], apiGroups: [''], resources: [HOSTILE], by: [], because: [HOSTILE] };
    answers({
      ...BASE, whatif: answer({
        summary: { ...NONE, maybe_revoked: 1 }, requests: { ...NONE, maybe_revoked: 3 },
        accesses: [access({ class: 'MAYBE_REVOKED', subject: HOSTILE, verb: HOSTILE, resource: HOSTILE, name: HOSTILE, missing: [HOSTILE], sample: [HOSTILE] })],
        possible: [{ kind: 'User', namespace: '', name: HOSTILE, scopes: [{ namespace: '', gained: [rule], lost: [] }] }],
        escalation: { opened: [{ from: node, to: node, text: HOSTILE, steps: [], presumptions: 0 }], closed: [], openedCount: 1, closedCount: 0 },
        changes: [{ object: HOSTILE, what: 'replaced', file: HOSTILE, line: 3 }], notes: [HOSTILE], unjudged: { [HOSTILE]: 2 }, unreadable: 1,
      }),
    });
    show(<WhatIf />, '#/whatif?cluster=c&delete=x%2Fy');
    expect(await screen.findByText('1 subject could become cluster administrator')).toBeTruthy();
    expect(screen.getByText('+ opened')).toBeTruthy();
    expect(screen.getByText('+ gained')).toBeTruthy();
    expect(document.querySelector('#main img, img[src=x]')).toBeNull();
    expect(document.body.textContent).not.toContain('\u202e');
  });
});
