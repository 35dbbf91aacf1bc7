import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../api/ask';
import { newClient } from '../../api/client';
import { ScopeProvider, useKnown } from '../../kit/scope';
import { answers } from '../../kit/testing/answers';
import { clean } from '../../kit/words';
import { changesTo, conditionsOf, read, toggled, whereOf, write, type Condition } from './conditions';
import { commandOf, csvOf, questionOf, sqlOf } from './copies';
import type { Event } from './queries';
import Explore from './index';

const clusters = { clusters: [{ name: 'c', events: 2, first: '2026-11-20T11:00:00Z', last: '2026-11-20T12:00:00Z' }], quiet: [] };
const event = (name: string, request = 'r1') => ({ request, stage: 's', auditID: name, subject: name, verb: 'get', requestURI: '/api/v1/namespaces/shop/secrets/' + encodeURIComponent(name), time: '2026-11-20T11:30:00Z', recorded: 'forbid', replayed: 'forbid', outcome: 'match', class: 'x', authorizer: '', grantCount: 0, code: 403, cause: '' });

function all(name: string) {
  return {
    clusters, status: { lag: 0, policyLag: 0, corrections: 0, version: '1' }, classes: { classes: [], outcomes: [] },
    events: { events: [event(name)] },
    facets: { requests: 3, whole: true, facets: [{ key: 'subject', more: false, whole: true, values: [{ value: name, requests: 3 }] }, { key: 'namespace', more: true, whole: true, values: [{ value: '', requests: 1 }, { value: 'shop', requests: 2 }] }] },
    histogram: { split: 'decision', stepSeconds: 60, whole: true, values: ['forbid', 'allow'], steps: [{ t: '2026-11-20T11:30:00Z', counts: [1, 2], others: 0 }] },
    complete: { kind: 'subject', more: false, values: [{ value: name, requests: 3 }] },
  };
}

function Ready({ children }: { children: React.ReactNode }) {
  return useKnown().cluster ? children : null;
}

const offered = () => [...document.querySelectorAll<HTMLElement>('[role=listbox] [role=option]')];

function show() {
  return render(<QueryClientProvider client={newClient()}><ScopeProvider><Ready><Explore /></Ready></ScopeProvider></QueryClientProvider>);
}

beforeEach(() => {
  location.hash = '#/explore?cluster=c';
});

describe('conditions', () => {
  it('are read as they are written, whatever is in them', () => {
    const list: Condition[] = [{ key: 'verb', sign: '!=', value: 'watch' }, { key: 'subject', sign: '^=', value: 'a "b" \\c' }, { key: 'namespace', sign: '=', value: '' }, { key: 'path', sign: '!^=', value: '/x?y=z&q' }, { key: '', sign: '=', value: 'junk' }, { key: 'name', sign: '=', value: 'x\u202ey\n' }];
    expect(read(write(list))).toEqual(list);
    expect(whereOf(list)).toBe(JSON.stringify(['verb!=watch', 'subject^=a "b" \\c', 'namespace=', 'path!^=/x?y=z&q', 'junk', 'name=x\u202ey\n']));
  });
  it('are parameters of their own where there is one and it is exact', () => {
    const list: Condition[] = [{ key: 'verb', sign: '=', value: 'get' }, { key: 'subject', sign: '=', value: 'a' }, { key: 'subject', sign: '=', value: 'b' }];
    const changes = changesTo(list);
    expect(changes).toMatchObject({ verb: 'get', subject: null, q: 'subject=a subject=b' });
    expect(conditionsOf(new URLSearchParams({ verb: 'get', q: 'subject=a subject=b' }))).toEqual(list);
    expect(toggled(list, { key: 'verb', sign: '!=', value: 'get' })).toHaveLength(3);
  });
});

describe('Explore', () => {
  it('shows requests, counts and the histogram; a count filters', async () => {
    const asked = answers(all('alice'));
    show();
    expect(await screen.findByRole('table', { name: 'Requests' })).toBeTruthy();
    expect(await screen.findByText('3 requests · drag to look at a part')).toBeTruthy();
    await userEvent.click(await screen.findByRole('link', { name: 'shop 2' }));
    expect(location.hash).toContain('q=namespace%3Dshop');
    await waitFor(() => expect(asked.some((q) => q.startsWith('events?') && q.includes(encodeURIComponent('["namespace=shop"]')))).toBe(true));
    await userEvent.click(screen.getByRole('link', { name: 'Turn round: Namespace is shop' }));
    expect(location.hash).toContain('q=namespace%21%3Dshop');
    await userEvent.click(screen.getByRole('link', { name: 'Remove: Namespace is not shop' }));
    expect(location.hash).toBe('#/explore?cluster=c');
  });

  it('completes columns and values by the keyboard', async () => {
    answers(all('alice'));
    show();
    const field = await screen.findByLabelText('Filter requests');
    await userEvent.type(field, 'subj');
    await waitFor(() => expect(offered()[0]?.textContent).toContain('Subject'));
    await userEvent.keyboard('{Enter}al');
    await waitFor(() => expect(offered().some((o) => o.textContent?.includes('alice'))).toBe(true));
    await userEvent.keyboard('{ArrowDown}{Enter}');
    expect(location.hash).toContain('subject=alice');
    await userEvent.type(field, 'verb!=watch{Enter}');
    expect(location.hash).toContain('q=verb%21%3Dwatch');
    await userEvent.keyboard('{Backspace}');
    expect(location.hash).not.toContain('watch');
    await userEvent.type(field, 'ali');
    await waitFor(() => expect(offered().filter((o) => o.textContent?.includes('alice'))).toHaveLength(4));
    await userEvent.click(offered().filter((o) => o.textContent?.includes('alice'))[1] as HTMLElement);
    expect(location.hash).toContain('q=namespace%3Dalice');
  });

  it('says why there is nothing, and fails in the words of the server', async () => {
    answers({ ...all('alice'), events: { events: [] }, facets: new Failure('too much to count', 504) });
    location.hash = '#/explore?cluster=c&q=verb%3Dnothing';
    show();
    expect(await screen.findByText('No request in this range matches these filters.')).toBeTruthy();
    expect((await screen.findAllByText('too much to count')).length).toBeGreaterThan(0);
  });

  it('follows live, and keeps what is shown while it is paused', async () => {
    answers(all('alice'));
    location.hash = '#/explore?cluster=c&live=on';
    show();
    const table = await screen.findByRole('table', { name: 'Requests' });
    await userEvent.click(screen.getByRole('button', { name: 'Pause' }));
    answers({ ...all('alice'), events: { events: [event('later', 'r2'), event('alice')] } });
    await userEvent.click(await screen.findByRole('button', { name: 'Show 1 new request' }, { timeout: 5000 }));
    expect(within(table).getAllByRole('row')).toHaveLength(3);
  });

  it('saves views under a name, and deletes them', async () => {
    answers(all('alice'));
    location.hash = '#/explore?cluster=c&verb=get&why=x';
    show();
    await userEvent.type(await screen.findByLabelText(/Save what is shown as/), 'reads');
    await userEvent.click(screen.getByRole('button', { name: 'Save', hidden: true }));
    expect((await screen.findByText('reads')).closest('a')?.getAttribute('href')).toBe('#/explore?verb=get&cluster=c');
    expect(localStorage.getItem('retrial.views')).toBe('[{"name":"reads","query":"verb=get"}]');
    await userEvent.click(screen.getByRole('button', { name: 'Delete the view reads', hidden: true }));
    expect(localStorage.getItem('retrial.views')).toBe('[]');
  });

  it('shows hostile names as what they are, in completions too', async () => {
    const name = '<img src=x onerror=alert(1)>\u202ea/b&c=d\u0000';
    answers(all(name));
    location.hash = '#/explore?' + new URLSearchParams({ cluster: 'c', subject: name }).toString();
    const { container } = show();
    await screen.findByRole('table', { name: 'Requests' });
    await userEvent.type(screen.getByLabelText('Filter requests'), 'subject=img');
    await waitFor(() => expect(offered().some((o) => o.textContent?.includes(clean(name)))).toBe(true));
    expect(container.querySelector('img')).toBeNull();
    expect(container.textContent).not.toContain('\u202e');
    for (const a of container.querySelectorAll('a')) expect(a.getAttribute('href')).toMatch(/^#\//);
  });
});

describe('copies', () => {
  it('write a command, and a request to the API, that take names as names', () => {
    const list = [{ key: 'verb', sign: '!=' as const, value: 'get' }, { key: 'subject', sign: '=' as const, value: "a'b $(id)\u202e" }];
    const asked = { cluster: 'c', from: '2026-11-20T11:00:00Z', to: '2026-11-20T12:00:00Z' };
    expect(commandOf(asked, list)).toBe(
      "retrial events --cluster c --from 2026-11-20T11:00:00Z --to 2026-11-20T12:00:00Z --where 'verb!=get' " +
        String.raw`--where $'subject=a\x27b $(id)\xe2\x80\xae' --limit 500`,
    );
    expect(questionOf(asked, list)).toContain('/api/v1/events --data-urlencode cluster=c');
  });
  it('select in SQL what the API selects as refused, and as Kubernetes’ own', () => {
    const sql = sqlOf({ cluster: 'c', from: '2026-11-20T11:00:00Z', to: '2026-11-20T12:00:00Z' }, [{ key: 'refused', sign: '=', value: 'yes' }, { key: 'system', sign: '=', value: 'no' }]);
    expect(sql).toContain("if(recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected', 'yes', 'no') = 'yes'");
    expect(sql).toMatch(/if\(subject = 'system:anonymous' OR .*, 'no', 'yes'\) = 'no'/);
  });
  it('write SQL and CSV that take names as names', () => {
    const sql = sqlOf({ cluster: "c'", from: '2026-11-20T11:00:00Z', to: '2026-11-20T12:00:00Z' }, [{ key: 'verb', sign: '=', value: 'get' }, { key: 'verb', sign: '=', value: "'); DROP" }, { key: 'group', sign: '!=', value: 'a\u202e' }]);
    expect(sql).toContain(String.raw`cluster = 'c\''`);
    expect(sql).toContain(String.raw`(verb = 'get' OR verb = '\'); DROP')`);
    expect(sql).toContain(String.raw`NOT (arrayExists(x -> x = 'a\xe2\x80\xae'`);
    const csv = csvOf([{ ...event('=cmd|"x"'), subject: '=cmd|"x"' } as unknown as Event]);
    expect(csv.split('\r\n')[1]).toMatch(/^2026-11-20T11:30:00Z,"'=cmd\|""x""",get,/);
  });
});
