import { describe, expect, it } from 'vitest';
import { ordered, orderedInSlices } from './order';
import { Heights, placed } from './rows';

describe('Heights', () => {
  it('are those of all rows one by one', () => {
    const n = 5000;
    const heights = new Heights(n, 34);
    const each = Array.from({ length: n }, () => 34);
    for (let i = 0; i < 400; i++) {
      const row = (i * 7919) % n;
      each[row] = 20 + (i % 50);
      heights.set(row, each[row]);
    }
    let above = 0;
    for (let i = 0; i < n; i++) {
      expect(heights.above(i)).toBeCloseTo(above, 3);
      if (i % 97 === 0) expect(heights.at(above + 0.5)).toBe(i);
      above += each[i] ?? 0;
    }
    expect(heights.above(n)).toBeCloseTo(above, 3);
    expect(heights.at(-5)).toBe(0);
    expect(heights.at(above + 1000)).toBe(n - 1);
    expect(new Heights(n + 10, 34, heights).above(n)).toBeCloseTo(above, 3);
  });
  it('are measured again only where they are others', () => {
    const heights = new Heights(10, 34);
    expect(heights.set(3, 40)).toBe(6);
    expect(heights.set(3, 40)).toBe(0);
    expect(heights.set(3, 34)).toBe(-6);
  });
});

describe('placed', () => {
  const [view, all, high] = [900, 34_000_000, 16_000_000];
  it('is the place in the page of a table that can be laid out', () => {
    expect(placed({ page: 0, rows: 0 }, 1234, view, 9_000_000, 9_000_000)).toBe(1234);
  });
  it('goes as far in the rows as in the page, and after a jump as far of all', () => {
    expect(placed({ page: 5_000_000, rows: 10_000_000 }, 5_000_100, view, all, high)).toBe(10_000_100);
    expect(placed({ page: 0, rows: 0 }, (high - view) / 2, view, all, high)).toBeCloseTo((all - view) / 2, 0);
  });
  it('reaches both ends', () => {
    expect(placed({ page: 300, rows: 800 }, 0, view, all, high)).toBe(0);
    expect(placed({ page: high - view - 300, rows: all - view - 800 }, high - view, view, all, high)).toBe(all - view);
  });
});

describe('orderedInSlices', () => {
  it('is what is ordered at a stroke', async () => {
    const rows = Array.from({ length: 12_345 }, (_, i) => ({ id: i, number: (i * 7919) % 101, text: `name-${(i * 31) % 977}` }));
    for (const by of [(r: (typeof rows)[0]) => r.number, (r: (typeof rows)[0]) => r.text])
      for (const up of [false, true]) expect(await orderedInSlices(rows, by, up, new AbortController().signal)).toEqual(ordered(rows, by, up));
  });
});
