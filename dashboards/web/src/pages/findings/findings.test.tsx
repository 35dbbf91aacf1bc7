import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { newClient } from '../../api/client';
import { ScopeProvider, useKnown } from '../../kit/scope';
import { answers } from '../../kit/testing/answers';
import { clean } from '../../kit/words';
import FindingDrawer from './drawer';
import Findings from './index';

const clusters = { clusters: [{ name: 'c', events: 2, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z' }], quiet: [] };
const all = (name: string) => ({
  clusters, status: { lag: 0, policyLag: 0, corrections: 0, version: '1' },
  rules: { rules: [{ id: 'quiet', title: 'Quiet', description: 'nothing', kind: 'event', severity: 'critical', attack: [] }, { id: 'probe', title: 'Probing', description: 'tries what it may', kind: 'window', severity: 'low', attack: ['T1613'] }] },
  findings: { rules: { probe: 1 }, findings: [{ id: 'f1', rule: 'probe', severity: 'low', title: 'Probing', text: name, subject: name, cluster: 'c', count: 9, attack: ['T1613'], first: '2026-11-20T11:10:00Z', last: '2026-11-20T11:20:00Z', window: '', evidence: [{ auditID: name, request: 'r1', text: name, time: '2026-11-20T11:10:00Z' }] }] },
});

function Ready({ children }: { children: React.ReactNode }) {
  return useKnown().cluster ? children : null;
}

function show(what: React.ReactElement) {
  return render(<QueryClientProvider client={newClient()}><ScopeProvider><Ready>{what}</Ready></ScopeProvider></QueryClientProvider>);
}

beforeEach(() => {
  location.hash = '#/findings?cluster=c';
});

describe('Findings', () => {
  it('lists them, and the rules with what they found first', async () => {
    answers(all('alice'));
    show(<Findings />);
    const rows = await screen.findAllByRole('link', { name: /Probing/ });
    expect(rows[0]?.getAttribute('href')).toBe('#/findings?cluster=c&finding=f1&since=2026-11-20T11%3A10%3A00Z');
    expect((await screen.findByRole('table', { name: 'Rules' })).textContent).toMatch(/Probing.*Quiet/);
  });
  it('says why there is nothing', async () => {
    answers({ ...all('alice'), findings: { rules: {}, findings: [] } });
    show(<Findings />);
    expect((await screen.findByText(/Nothing was found in this range/)).textContent).toContain('2 rules');
  });
  it('fails in the words of the server', async () => {
    answers({ ...all('alice'), findings: new Failure('the store is away', 500) });
    show(<Findings />);
    expect(await screen.findByText('the store is away')).toBeTruthy();
  });
  it('leads from a finding to its requests; hostile names stay names', async () => {
    const name = '<img src=x onerror=alert(1)>\u202ea/b&c=d';
    answers(all(name));
    location.hash = '#/findings?cluster=c&finding=f1';
    const { container } = show(<FindingDrawer id="f1" />);
    expect(await screen.findByText('The requests behind it: the first 1 of 9')).toBeTruthy();
    const evidence = container.querySelector('ol a');
    expect(evidence?.textContent).toBe(clean(name));
    expect(new URLSearchParams(evidence?.getAttribute('href')?.split('?').slice(1).join('?')).get('why')).toBe(name);
    expect(container.querySelector('img')).toBeNull();
  });
  it('says that there is none of the ID', async () => {
    answers(all('alice'));
    show(<FindingDrawer id="nobody" />);
    expect((await screen.findByText(/No finding of this cluster/)).textContent).toContain('nobody');
  });
});
