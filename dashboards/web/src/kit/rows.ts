// Which rows of a long table are on the screen, and where. What a row is high is known when it has been shown; of the others it is taken
// that they are as high as those. A row that is measured costs a sum over some thousand numbers, of however many rows.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

const BLOCK = 1024;

/** Heights of the rows of a table. */
export class Heights {
  private readonly over: Float32Array; // of each row, over the usual
  private readonly blocks: Float64Array; // sums of over

  constructor(readonly count: number, readonly usual: number, before?: Heights) {
    this.over = new Float32Array(count);
    this.blocks = new Float64Array(Math.ceil(count / BLOCK));
    if (!before || before.usual !== usual) return;
    this.over.set(before.over.subarray(0, count));
    this.over.forEach((over, i) => over && this.add(i, over));
  }

  /** set notes a row's height, and returns what it is over what was taken. */
  set(row: number, height: number): number {
    const known = this.over[row] ?? 0;
    const over = height - this.usual - known;
    if (Math.abs(over) < 0.2) return 0;
    this.over[row] = known + over;
    this.add(row, over);
    return over;
  }

  private add(row: number, over: number) {
    const block = Math.floor(row / BLOCK);
    this.blocks[block] = (this.blocks[block] ?? 0) + over;
  }

  /** above is how high all rows before one are. */
  above(row: number): number {
    let sum = row * this.usual;
    const block = Math.floor(row / BLOCK);
    for (let b = 0; b < block; b++) sum += this.blocks[b] ?? 0;
    for (let i = block * BLOCK; i < row; i++) sum += this.over[i] ?? 0;
    return sum;
  }

  /** at is the row that is at a height. */
  at(height: number): number {
    let row = 0;
    let above = 0;
    for (const over of this.blocks) {
      const all = BLOCK * this.usual + over;
      if (above + all > height) break;
      above += all;
      row += BLOCK;
    }
    for (; row < this.count - 1; row++) {
      above += this.usual + (this.over[row] ?? 0);
      if (above > height) break;
    }
    return Math.max(0, Math.min(row, this.count - 1));
  }
}

/** Rows beyond the screen that are there, so that the keyboard finds the next one, and how many of them scrolling may use up. */
const BEYOND = 16;
const SPENT = 8;
/** HIGHEST is what a table takes up of a page at most: nothing is laid out beyond 33 million pixels. */
const HIGHEST = 16_000_000;

/** Shown are the rows that are in the page, and the heights of those before and after them. */
interface Shown {
  first: number;
  end: number;
  before: number;
  after: number;
}

/** useShown says which of so many rows are shown; on is false where all are. frame holds the rows, each with data-index. */
export function useShown(count: number, on: boolean): Shown & { frame: RefObject<HTMLDivElement | null> } {
  const frame = useRef<HTMLDivElement>(null);
  const heights = useRef(new Heights(0, 34));
  const measured = useRef(false);
  // Where the window is: in the page, from the table's top, and in the rows. In a table that is higher than it can be laid out they differ.
  const place = useRef({ page: 0, rows: 0 });
  const [shown, setShown] = useState<Shown>(() => ({ first: 0, end: Math.min(count, 3 * BEYOND), before: 0, after: 0 }));

  const look = useCallback(() => {
    const element = frame.current;
    if (!element || !on) return;
    if (heights.current.count !== count) heights.current = new Heights(count, heights.current.usual, heights.current);
    const h = heights.current;
    const top = element.getBoundingClientRect().top;
    const view = innerHeight;
    const all = h.above(count);
    const high = Math.min(all, HIGHEST);
    const at = place.current;
    at.rows = placed(at, -top, view, all, high);
    at.page = -top;
    // After a long way from an end of the page, but not of the rows: there is more to scroll to.
    const left = [at.page, high - view - at.page, at.rows, all - view - at.rows] as const;
    if (high < all && ((left[0] < view && left[2] > 3 * view) || (left[1] < view && left[3] > 3 * view))) {
      const to = (at.rows / (all - view)) * (high - view);
      const by = to - at.page;
      at.page = to;
      scrollBy({ top: by, behavior: 'instant' });
    }
    const least = h.at(at.rows);
    const most = h.at(at.rows + view) + 1;
    setShown((was) => {
      const enough = was.end <= count && (was.first === 0 || was.first <= least - SPENT) && (was.end === count || was.end >= most + SPENT) &&
        was.first >= least - 3 * BEYOND && was.end <= most + 3 * BEYOND;
      const first = enough ? was.first : Math.max(0, least - BEYOND);
      const end = enough ? was.end : Math.min(count, most + BEYOND);
      const before = Math.max(0, at.page - at.rows + h.above(first));
      const after = Math.max(0, high - before - (h.above(end) - h.above(first)));
      return was.first === first && was.end === end && Math.abs(was.before - before) < 0.5 && Math.abs(was.after - after) < 0.5 ? was : { first, end, before, after };
    });
  }, [count, on]);

  const measure = useCallback(() => {
    const element = frame.current;
    if (!element || !on) return;
    const rows = [...element.children].map((e) => [Number((e as HTMLElement).dataset.index), e.getBoundingClientRect().height] as const).filter((r) => r[1] > 0 && r[0] < count);
    if (!rows.length) return;
    let changed = !measured.current;
    if (changed) {
      measured.current = true;
      const usual = rows.reduce((sum, r) => sum + r[1], 0) / rows.length;
      heights.current = new Heights(count, Math.abs(usual - heights.current.usual) < 1 ? heights.current.usual : usual);
    }
    const h = heights.current;
    const least = h.at(place.current.rows);
    let moved = 0; // what is on the screen, by rows above it
    for (const [row, height] of rows) {
      const over = h.set(row, height);
      changed ||= over !== 0;
      if (row < least) moved += over;
    }
    if (!changed) return;
    if (moved) {
      place.current.page += moved;
      place.current.rows += moved;
      scrollBy({ top: moved, behavior: 'instant' });
    }
    look();
  }, [count, on, look]);

  // Whatever was drawn is measured before it is seen.
  useLayoutEffect(measure);
  useLayoutEffect(look, [look]);
  useEffect(() => {
    if (!on) return;
    let width = innerWidth;
    const resized = () => {
      if (innerWidth !== width) measured.current = false;
      width = innerWidth;
      measure();
      look();
    };
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', resized);
    const watch = new ResizeObserver(() => {
      measure();
      look();
    });
    watch.observe(document.body); // what is above may grow
    if (frame.current) watch.observe(frame.current);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', resized);
      watch.disconnect();
    };
  }, [on, look, measure]);
  return on ? { ...shown, frame } : { first: 0, end: count, before: 0, after: 0, frame };
}

/** placed returns where the window is in the rows when it is somewhere in the page: as far from where it was as in the page, or, after a
 *  jump, as far of all. */
export function placed(was: { page: number; rows: number }, page: number, view: number, all: number, high: number): number {
  if (all <= high || page <= 0) return page;
  const end = high - view;
  if (page >= end) return all - high + page;
  const by = page - was.page;
  const rows = Math.abs(by) > 2 * view ? (page / end) * (all - view) : was.rows + by;
  // Both ends are reached, and not jumped to.
  return Math.max(Math.min(rows, 4 * page), all - view - 4 * (end - page));
}
