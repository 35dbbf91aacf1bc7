import { execFileSync } from 'node:child_process';
import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor, within } from '@testing-library/react';
import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { newClient } from '../../api/client';
import { ScopeProvider } from '../../kit/scope';
import { command } from '../../kit/shell';
import { answers } from '../../kit/testing/answers';
import { HOSTILE } from '../../kit/testing/page';
import { useKnown } from '../../kit/scope';
import { clean } from '../../kit/words';
import Event from './index';
import EventDrawer from './drawer';

const clusters = { clusters: [{ name: 'c', events: 2, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z' }], quiet: [] };
const base = { clusters, status: { lag: 0, policyLag: 0, corrections: 0, version: '1' }, classes: { classes: [{ class: 'allowed', outcome: 'match', text: 'both allow' }], outcomes: [{ outcome: 'match', text: 'both came to the same' }] } };

function judged(name: string, more: Record<string, unknown> = {}) {
  return {
    cluster: 'c', request: 'r1', source: 'import', stages: [{ stage: 'ResponseComplete', time: '2026-11-20T11:30:00.1Z', code: 200 }],
    event: { auditID: name, verb: 'get', requestURI: '/api/v1/namespaces/shop/secrets/' + encodeURIComponent(name), requestReceivedTimestamp: '2026-11-20T11:30:00.000001Z', user: { username: name, groups: [name] }, sourceIPs: [name], userAgent: name, responseStatus: { code: 200 } },
    verdict: {
      auditID: name, user: name, verb: 'get', requestURI: '/x', outcome: 'match', class: 'allowed', recorded: 'allow', replayed: 'allow', authorizer: 'rbac', cause: '', config: 'k', engine: 'e', stage: 'ResponseComplete', requestReceivedTimestamp: '2026-11-20T11:30:00.000001Z', verdict: 'match',
      grants: [{ binding: 'RoleBinding/shop/' + name, role: 'Role/shop/' + name, rule: 2, subject: 'User/' + name, reason: '' }], credential: 'JTI=' + name,
    },
    chain: [{ authorizer: 'rbac', answer: 'allow' }], ...more,
  };
}

const neighbours = (name: string) => ({ events: [
  { request: 'r1', stage: 's', auditID: name, subject: name, verb: 'get', requestURI: '/x', time: '2026-11-20T11:30:00.000001Z', recorded: 'allow' },
  { request: 'r0', stage: 's', auditID: 'before', subject: name, verb: 'list', requestURI: '/api/v1/pods', time: '2026-11-20T11:29:58Z', recorded: 'forbid' },
] });

const lineage = (name: string) => ({ cluster: 'c', credentials: [{ credential: 'JTI=' + name, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z', requests: 7, forbidden: 2, users: [name], uses: [{ from: name, pod: name, userAgent: name, requests: 7, first: '', last: '' }], issue: { at: '2026-11-20T10:00:00Z', by: name, auditID: 'issued', serviceAccount: name } }] });

function all(name: string) {
  return { ...base, why: { requests: [judged(name)] }, events: neighbours(name), lineage: lineage(name), can: { scopes: [{ namespace: 'shop', rules: [{ verbs: ['get', 'list'], resources: ['secrets'], apiGroups: [''], by: [{ binding: 'RoleBinding/shop/' + name, role: 'Role/shop/' + name, rule: 2 }] }] }] } };
}

function Ready({ children }: { children: React.ReactNode }) {
  return useKnown().cluster ? children : null;
}

function show(what: React.ReactElement) {
  return render(<QueryClientProvider client={newClient()}><ScopeProvider><Ready>{what}</Ready></ScopeProvider></QueryClientProvider>);
}

beforeEach(() => {
  location.hash = '#/events/x?cluster=c';
});

describe('Event', () => {
  it('draws the grant from its subject to its rule, and the neighbours in time', async () => {
    answers(all('alice'));
    const { container } = show(<Event id="alice" />);
    expect(await screen.findByText('The one grant that makes it possible')).toBeTruthy();
    await waitFor(() => expect(container.querySelector('ol.grants')?.textContent).toContain('get, list on secrets'));
    expect(container.querySelector('ol.grants')?.textContent).toMatch(/User.*alice.*bound by.*RoleBinding.*shop\/alice.*to.*Role.*whose.*rule 2/);
    const before = within(await screen.findByRole('region', { name: 'Before and after' }));
    expect((await before.findByRole('link')).getAttribute('href')).toBe('#/events/before?cluster=c&request=r0');
    expect(before.getByText('−2 s')).toBeTruthy();
    expect((await screen.findByText('the request')).getAttribute('href')).toBe('#/events/issued?cluster=c');
    expect(screen.getByText('Who else could do this then?').getAttribute('href')).toContain('namespace=shop');
    expect(screen.queryByText('Who refused it, and what would have allowed it')).toBeNull();
  });

  it('shows in the open what would have allowed a refused request', async () => {
    const r = judged('bob');
    Object.assign(r.verdict, { recorded: 'forbid', replayed: 'forbid', grants: [] });
    answers({ ...all('bob'), why: { requests: [r] }, 'explain-deny': { requests: [{ request: 'r1', text: 'no authorizer allowed it', checks: [], chain: [{ authorizer: 'rbac', answer: 'no opinion', text: 'no binding grants it', nearest: {
      rule: { verbs: ['get'], resources: ['secrets'], apiGroups: [''] }, roles: [{ role: 'Role/shop/reader', rule: 0 }], bindings: [], almost: [{ subject: 'User/bob', binding: 'RoleBinding/shop/b', role: 'Role/shop/r', rule: 1, lacks: 'verb' }] } }], missing: [] }] } });
    show(<Event id="bob" />);
    const part = within(await screen.findByRole('region', { name: 'Who refused it, and what would have allowed it' }));
    expect(await part.findByText('Role/shop/reader')).toBeTruthy();
    expect(part.getByText(/but for the/).textContent).toBe('but for the verb');
    expect(part.getByRole('region', { name: 'The narrowest rule that allows it' }).textContent).toContain('verbs: ["get"]');
    expect(screen.queryByText('The authorizers, in order')).toBeNull();
  });

  it('says that there is none, and names those that begin so', async () => {
    answers({ ...base, why: { requests: [], like: [{ request: 'r', auditID: 'abcdef', subject: 'alice', verb: 'get', requestURI: '/x' }] } });
    show(<Event id="abcd" />);
    expect((await screen.findByText('abcdef')).closest('a')?.getAttribute('href')).toContain('#/events/abcdef');
  });

  it('fails in the words of the server', async () => {
    answers({ ...base, why: new Failure('the store is away', 500) });
    show(<Event id="x" />);
    expect((await screen.findByRole('alert')).textContent).toContain('the store is away');
  });

  it('names the other requests of an audit ID that was used again', async () => {
    answers({ ...all('alice'), why: { requests: [judged('alice'), judged('alice', { request: 'r2' })] } });
    location.hash = '#/events/alice?cluster=c&request=r2';
    show(<Event id="alice" />);
    expect(await screen.findByText('2 requests carry this audit ID.')).toBeTruthy();
  });

  it('shows hostile names as what they are, beside a page too', async () => {
    const name = '<img src=x onerror=alert(1)>\u202ea/b&c=d\u0000';
    answers(all(name));
    location.hash = '#/explore?cluster=c&why=x';
    const { container } = show(<EventDrawer id={name} />);
    await screen.findByText('The one grant that makes it possible');
    await screen.findByText('Issued');
    expect(container.querySelector('img')).toBeNull();
    expect(container.textContent).toContain(clean(name));
    expect(container.textContent).not.toContain('\u202e');
    for (const a of container.querySelectorAll('a')) expect(a.getAttribute('href')).toMatch(/^#\//);
  });
});

describe('command', () => {
  it('quotes for a shell, whatever is in it', () => {
    expect(command('retrial', 'why', "it's; rm -rf ~")).toBe(String.raw`retrial why 'it'\''s; rm -rf ~'`);
    expect(command('a\u202e\n')).toBe(String.raw`$'a\xe2\x80\xae\x0a'`);
  });
  it('reads back in a shell as what it was', () => {
    const texts = [HOSTILE, "it's", '-n', '~', '$(id)', '`id`', '!x', '*', '', ' a ', '\\', 'a\nb\r', '\u001b[31m', '\u202egnp', '\u{e0041}', 'שלום', '🙂', "'\u0007\\'"];
    const out = execFileSync('bash', ['-c', `printf '%s\\0' ${command(...texts)}`], { encoding: 'utf8' });
    expect(out.split('\0').slice(0, -1)).toEqual(texts);
  });
});
