import { afterEach, describe, expect, it, vi } from 'vitest';
import { forgetDraft, keepDraft, keptDraft, markOf, written } from './draft';

afterEach(() => {
  vi.restoreAllMocks();
  sessionStorage.clear();
  forgetDraft();
});

describe('a draft', () => {
  const one = [{ name: 'a.yaml', text: 'kind: Role' }];
  it('is told apart by its files and what is in them, without empty ones', () => {
    expect(markOf([])).toBe('');
    expect(markOf([{ name: 'a.yaml', text: ' \n' }])).toBe('');
    const marks = [one, [{ name: 'b.yaml', text: 'kind: Role' }], [{ name: 'a.yaml', text: 'kind: Rolf' }], [{ name: 'a.yam', text: 'lkind: Role' }], [...one, ...one]].map(markOf);
    expect(new Set(marks).size).toBe(marks.length);
    expect(markOf([...one, { name: 'c', text: '' }])).toBe(markOf(one));
    expect(written([...one, { name: 'c', text: '' }])).toEqual(one);
  });
  it('is kept by the tab', () => {
    expect(keptDraft()).toEqual([]);
    expect(keepDraft(one)).toBe(markOf(one));
    forgetDraft();
    expect(keptDraft()).toEqual(one);
  });
  it('stays while the page is open where the tab keeps nothing', () => {
    vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => { throw new Error('full'); });
    keepDraft(one);
    expect(keptDraft()).toEqual(one);
  });
  it('is none where something else was kept', () => {
    for (const text of ['{', '7', 'null', '[null, {"name": 3}, "x"]']) {
      sessionStorage.setItem('retrial.draft', text);
      forgetDraft();
      expect(keptDraft()).toEqual([]);
    }
  });
});
