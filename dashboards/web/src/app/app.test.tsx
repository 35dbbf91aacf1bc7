import { act, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../api/ask';
import { answers } from '../kit/testing/answers';
import { App } from './App';
import { now } from './former';
import { step } from './keys';
import { near } from './Nothing';

const cluster = { name: 'prod', events: 9, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z' };
const status = { version: '1', lag: 0, policyLag: 0, deadLetterLag: 0, corrections: 0, cacheLags: [] };
const event = (i: number) => ({
  auditID: `id-${i}`, request: `r${i}`, stage: 'ResponseComplete', time: '2026-11-20T11:30:00Z', subject: 'alice', verb: 'get', requestURI: `/api/v1/namespaces/shop/pods/p${i}`,
  code: 200, recorded: 'allow', replayed: 'allow', outcome: 'match', class: 'match', cause: '', grantCount: 1, grants: 1, authorizer: 'rbac', user: 'alice',
});
const good = { clusters: { clusters: [cluster] }, status, classes: { outcomes: [], classes: [] }, events: { events: [event(1), event(2)] } };

describe('App', () => {
  beforeEach(() => void (location.hash = '#/explore'));

  it('puts the cluster into the address, and asks about it and its range', async () => {
    const asked = answers(good);
    render(<App />);
    expect(await screen.findAllByText('alice')).toHaveLength(2);
    expect(location.hash).toBe('#/explore?cluster=prod');
    expect(asked).toContain('events?cluster=prod&from=2026-11-20T11%3A00%3A00.000Z&to=2026-11-20T12%3A00%3A00.000Z&limit=200');
    expect(document.title).toBe('Explore · prod · Retrial');
  });

  it('opens on what came since the last visit, where there was one', async () => {
    const seen = Date.parse('2026-11-20T11:30:00Z');
    localStorage.setItem('retrial.visit.prod', JSON.stringify({ at: Date.now() - 3_600_000, seen, before: null }));
    location.hash = '';
    answers(good);
    const first = render(<App />);
    await waitFor(() => expect(location.hash).toBe('#/?cluster=prod&range=visit'));
    first.unmount();
    location.hash = '#/?range=1h'; // a link says what it shows
    render(<App />);
    await waitFor(() => expect(location.hash).toBe('#/?range=1h&cluster=prod'));
  });

  it('completes subjects and namespaces in the search', async () => {
    const names = { values: [{ value: 'system:serviceaccount:shop:bot\u202e', requests: 3 }] };
    const asked = answers({ ...good, complete: names });
    render(<App />);
    await screen.findAllByText('alice');
    await userEvent.keyboard('{Control>}k{/Control}shop');
    const found = await screen.findAllByRole('option', { name: /shop:bot\\u202e/ });
    expect(found[0]?.textContent).toContain('Subject · 3 requests');
    expect(asked).toContain('complete?cluster=prod&kind=namespace&prefix=shop&limit=6');
    await userEvent.keyboard('{Enter}');
    expect(location.hash).toBe('#/subjects/system%3Aserviceaccount%3Ashop%3Abot%E2%80%AE?cluster=prod');
  });

  it('says what to do where there are no events', async () => {
    answers({ ...good, clusters: { clusters: [] } });
    render(<App />);
    expect(await screen.findByText('retrial connect NAME')).toBeTruthy();
  });

  it('says so where the server is away, and recovers', async () => {
    answers({ clusters: new Failure('the store is gone', 500), status });
    render(<App />);
    expect((await screen.findByRole('alert')).textContent).toContain('the store is gone');
  });

  it('names the pages near an unknown address', async () => {
    location.hash = '#/exlpore?cluster=prod';
    answers(good);
    render(<App />);
    expect(await screen.findByRole('heading', { name: 'Unknown address' })).toBeTruthy();
    expect(near('/exlpore').map((p) => p.title)).toEqual(['Explore']);
  });

  it('opens a drawer by the address and closes it', async () => {
    location.hash = '#/explore?cluster=prod&why=id-1&request=r1';
    answers({ ...good, why: { requests: [] } });
    render(<App />);
    const close = await screen.findByRole('button', { name: 'Close' });
    await userEvent.click(close);
    expect(location.hash).toBe('#/explore?cluster=prod');
  });

  it('lets news wait while somebody is at something', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    try {
      location.hash = '#/explore?cluster=prod';
      answers(good);
      render(<App />);
      await screen.findAllByText('alice');
      screen.getByLabelText('Verb').focus();
      const asked = answers({ ...good, clusters: { clusters: [{ ...cluster, last: '2026-11-20T13:00:00Z' }] } });
      await act(() => vi.advanceTimersByTimeAsync(7000));
      const show = await screen.findByRole('button', { name: 'Show what is new' });
      expect(asked.filter((q) => q.startsWith('events'))).toEqual([]);
      act(() => show.click());
      await waitFor(() => expect(asked.some((q) => q.startsWith('events') && q.includes('T13'))).toBe(true));
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('j and k', () => {
  it('go on from what has the focus, be it a row or not', () => {
    vi.spyOn(Element.prototype, 'getClientRects').mockReturnValue([{}] as unknown as DOMRectList);
    Element.prototype.scrollIntoView = vi.fn();
    const row = (name: string) => <a href={'#' + name} data-row>{name}</a>;
    render(<main id="main">{row('a')}<section aria-label="opened" tabIndex={-1}>{row('b')}{row('c')}</section>{row('d')}</main>);
    const after = (by: 1 | -1) => {
      step(by);
      return document.activeElement?.textContent;
    };
    const opened = screen.getByLabelText('opened');
    opened.focus();
    expect([after(1), after(1), after(1), after(1)]).toEqual(['b', 'c', 'd', 'd']);
    opened.focus();
    expect(after(-1)).toBe('a');
    screen.getByText('d').blur();
    screen.getByText('a').blur();
    expect(after(1)).toBe('a');
  });
});

describe('former addresses', () => {
  const of = (hash: string) => now(hash.split('?')[0] ?? '', new URLSearchParams(hash.split('?')[1]));
  it('lead where they did', () => {
    expect(of('/subject?cluster=c&subject=a%2Fb')).toBe('#/subjects/a%2Fb?cluster=c');
    expect(of('/subject?cluster=c&user=alice')).toBe('#/subjects/alice?cluster=c');
    expect(of('/subject?cluster=c&subject=alice&show=rollback&rows=all')).toBe('#/subjects/alice?cluster=c&rows=all&text=rollback');
    expect(of('/subject?cluster=c')).toBe('#/subjects?cluster=c');
    expect(of('/?cluster=c&outcome=drift&chart=verdict')).toBe('#/explore?cluster=c&outcome=drift&split=outcome');
    expect(of('/?cluster=c&user=alice&before=1.x&why=id&request=r')).toBe('#/explore?cluster=c&why=id&request=r&subject=alice');
    expect(of('/?cluster=c&why=id&request=r')).toBeNull();
    expect(of('/findings?cluster=c&finding=f&since=2026-11-20T11:36:00Z')).toBeNull();
    expect(of('/access?cluster=c&user=alice&at=2026-11-20T11:36:00Z')).toBe('#/access?cluster=c&at=2026-11-20T11%3A36%3A00Z&subject=alice');
    expect(of('/lineage?cluster=c&credential=JTI%3Dx&subject=')).toBe('#/subjects?cluster=c&credential=JTI%3Dx');
    expect(of('/lineage?cluster=c')).toBe('#/subjects?cluster=c');
    expect(of('/verdicts?cluster=c')).toBe('#/trust?cluster=c&show=verdicts');
    expect(of('/lineage?cluster=c&subject=alice&from=1')).toBe('#/subjects/alice?cluster=c&from=1');
    expect(of('/?cluster=c')).toBeNull();
    expect(of('/explore?cluster=c&subject=x')).toBeNull();
  });
});
