import { QueryClientProvider } from '@tanstack/react-query';
import { render, renderHook, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { Failure, filled, root } from '../api/ask';
import { newClient } from '../api/client';
import { useQuestion } from '../api/questions';
import { match, parse, pathOf, useLinks, write } from './address';
import { Question } from './Card';
import { fill } from './Chart';
import { DataTable } from './DataTable';
import { Filters, PickFilter, TextFilter } from './Filter';
import { Name } from './Name';
import { lastVisit, rangeOf, visiting } from './range';
import { spanOf } from './Time';
import { clean, percent, short } from './words';
import { answers } from './testing/answers';

describe('words', () => {
  it('shows unreadable characters as escapes, and says that an escape was not in the text', () => {
    expect(clean('user\u202egnp')).toBe('user\\u202egnp');
    expect(clean('\\u0041\u202e')).toBe('\\\\u0041\\u202e');
    expect(clean('a\nb\tc\u0000')).toBe('a\\nb\\tc\\u0000');
    expect(clean('admin\u{e0041}')).toBe('admin\\u{e0041}');
    expect(clean('שלום 🙂 C:\\x')).toBe('שלום 🙂 C:\\x');
  });
  it('cuts long texts between characters', () => {
    expect(short('x'.repeat(170))).toHaveLength(170);
    expect(short('x'.repeat(159) + '🙂'.repeat(20))).toBe('x'.repeat(159) + '… (40 more characters)');
  });
  it('never rounds up to everything, nor down to nothing', () => {
    expect([percent(99_999_999, 100_000_000), percent(1, 100_000_000), percent(1, 1), percent(0, 0)]).toEqual(['> 99.99 %', '< 0.01 %', '100 %', '–']);
  });
});

describe('address', () => {
  it('keeps names apart from the path, whatever is in them', () => {
    for (const name of ['used/again', 'a?b&c=d#e%00%2f+', '..', 'שלום', '__proto__', '%', '']) {
      expect(match('/subjects/:name', parse(write(pathOf('subjects', name), new URLSearchParams())).path)).toEqual(name ? { name } : null);
    }
    expect(match('/subjects/:name', '/subjects/a/b')).toBeNull();
    expect(match('/subjects/:name', '/subjects/%zz')).toEqual({ name: '%zz' });
  });
  it('changes parameters and keeps the cluster and the time on the way to another page', () => {
    location.hash = '#/explore?cluster=a&from=1&to=2&verb=get';
    const links = renderHook(useLinks).result.current;
    expect(links.here({ verb: null, resource: 'pods' })).toBe('#/explore?cluster=a&from=1&to=2&resource=pods');
    expect(links.to('/trust', { show: 'x' })).toBe('#/trust?cluster=a&from=1&to=2&show=x');
  });
});

describe('range', () => {
  const cluster = { name: 'c', events: 1, first: '2026-11-01T00:00:00Z', last: '2026-11-20T12:00:00Z' };
  const of = (query: string) => rangeOf(cluster, new URLSearchParams(query));
  it('ends with the newest event', () => {
    expect(of('range=1h')).toMatchObject({ from: '2026-11-20T11:00:00.000Z', to: '2026-11-20T12:00:00.000Z' });
    expect(of('range=nonsense')).toMatchObject({ from: '2026-11-01T00:00:00.000Z', name: 'all' });
    expect(of('from=2026-11-02T00:00:00Z&to=2026-11-03T00:00:00Z').name).toBe('fixed');
    expect(of('from=x&to=y').name).toBe('all');
  });
  it('begins where the last visit ended', () => {
    expect(lastVisit('c')).toBeNull();
    visiting(cluster, 0);
    visiting({ ...cluster, last: '2026-11-20T13:00:00Z' }, 60_000);
    expect(lastVisit('c')).toBeNull(); // still the first
    const later = { ...cluster, last: '2026-11-21T00:00:00Z' };
    visiting(later, 24 * 3_600_000);
    expect(rangeOf(later, new URLSearchParams('range=visit'))).toMatchObject({ from: '2026-11-20T13:00:00.000Z', to: '2026-11-21T00:00:00.000Z' });
    localStorage.setItem('retrial.visit.c', '{"at":"x"}');
    expect(lastVisit('c')).toBeNull();
  });
  it('is worded without saying a date twice', () => {
    expect(spanOf('2026-11-20T11:00:00Z', '2026-11-20T12:30:10Z', 'UTC')).toBe('2026-11-20 11:00 – 12:30:10');
  });
  it('of a chart gets its empty buckets back', () => {
    const { starts, values } = fill('2026-11-20T11:00:00Z', '2026-11-20T11:05:00Z', 60, ['2026-11-20T11:01:00Z', '2026-11-20T11:04:00Z'], [{ label: '', tone: '', values: [3, 4] }]);
    expect(starts).toHaveLength(5);
    expect(values).toEqual([[0, 3, 0, 0, 4]]);
  });
});

function Rules({ none }: { none?: boolean }) {
  return <Question asks={useQuestion('status', {})} empty={() => none && 'There is nothing.'}>{(a) => <p>version {a.version}</p>}</Question>;
}

describe('Question', () => {
  const show = (ui: React.ReactElement) => render(<QueryClientProvider client={newClient()}>{ui}</QueryClientProvider>);
  it('waits, then shows the answer', async () => {
    answers({ status: { version: '1' } });
    show(<Rules />);
    expect(screen.getByRole('status', { name: 'Loading' })).toBeTruthy();
    expect(await screen.findByText('version 1')).toBeTruthy();
  });
  it('says why there is nothing', async () => {
    answers({ status: {} });
    show(<Rules none />);
    expect(await screen.findByText('There is nothing.')).toBeTruthy();
  });
  it('fails in the words of the server, escaped, and asks again on request', async () => {
    const asked = answers({ status: new Failure('the store failed\u202e', 500) });
    show(<Rules />);
    expect((await screen.findByRole('alert')).textContent).toContain('the store failed\\u202e');
    expect(asked).toHaveLength(1); // a 500 does not pass
    answers({ status: { version: '2' } });
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('version 2')).toBeTruthy();
  });
});

describe('DataTable', () => {
  const columns = [{ id: 'n', head: 'Number', width: '1fr', cell: (n: number) => `row ${n}` }];
  it('links rows and names what is open', () => {
    render(<DataTable label="Numbers" columns={columns} rows={[1, 2]} rowKey={String} href={(n) => `#/n/${n}`} current="2" />);
    expect(screen.getAllByRole('row')).toHaveLength(3);
    expect(screen.getByRole('link', { current: true }).textContent).toBe('row 2');
  });
  it('has few of a million rows in the page', () => {
    const rows = Array.from({ length: 1_000_000 }, (_, i) => i);
    render(<DataTable label="Numbers" columns={columns} rows={rows} rowKey={String} />);
    expect(screen.getAllByRole('row').length).toBeLessThan(200);
    expect(screen.getByRole('table').getAttribute('aria-rowcount')).toBe('1000001');
  });
  it('asks for more at its end', () => {
    const more = vi.fn();
    render(<DataTable label="Numbers" columns={columns} rows={[1]} rowKey={String} more={more} />);
    expect(more).toHaveBeenCalled();
  });
});

describe('Filters', () => {
  it('are parameters of the address', async () => {
    location.hash = '#/explore?verb=get';
    render(<Filters names={['verb', 'decision']}><TextFilter name="verb" label="Verb" /><PickFilter name="decision" label="Decision" values={[['allow', 'allowed']]} /></Filters>);
    await userEvent.selectOptions(screen.getByLabelText('Decision'), 'allowed');
    expect(location.hash).toBe('#/explore?verb=get&decision=allow');
    await userEvent.type(screen.getByLabelText('Verb'), 'x{Enter}');
    expect(location.hash).toContain('verb=getx');
  });
});

describe('Name', () => {
  it('isolates directions and makes no markup', () => {
    const { container } = render(<Name>{'<img src=x onerror=alert(1)>\u202e'}</Name>);
    expect(container.querySelector('bdi')?.textContent).toBe('<img src=x onerror=alert(1)>\\u202e');
    expect(container.querySelector('img')).toBeNull();
  });
});

describe('answers', () => {
  it('have empty lists where the server wrote null', () => {
    expect(filled({ groups: [{ likely: null, about: null }], apiservers: null })).toEqual({ groups: [{ likely: [], about: null }], apiservers: [] });
  });
  it('are asked for beside the page, wherever that is', () => {
    expect(root('http://host/a/index.html?x#/y')).toBe('http://host/a/api/v1/');
    expect(root('http://host/')).toBe('http://host/api/v1/');
  });
});
