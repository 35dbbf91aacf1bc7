// A draft of roles and bindings: files of YAML or JSON. It is kept in the tab alone, never in the address, which has its mark: so a link
// to what a draft would do says in another tab that the draft is missing, and does not ask about another one.

/** Sheet is a file of a draft. */
export interface Sheet {
  name: string;
  text: string;
}

/** PASTED is the name of what was pasted. */
export const PASTED = 'draft.yaml';

const KEPT = 'retrial.draft';
let held: Sheet[] | null = null; // where the tab keeps nothing

/** written leaves out what is empty. */
export function written(sheets: Sheet[]): Sheet[] {
  return sheets.filter((s) => s.text.trim() !== '');
}

/** markOf tells drafts apart; '' is of none. */
export function markOf(sheets: Sheet[]): string {
  const all = written(sheets);
  if (!all.length) return '';
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (const s of all) {
    for (const text of [s.name, s.text]) {
      for (let i = 0; i <= text.length; i++) {
        const c = i < text.length ? text.charCodeAt(i) : 0x10000;
        a = Math.imul(a ^ c, 2654435761);
        b = Math.imul(b ^ c, 1597334677);
      }
    }
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

/** keepDraft keeps a draft in place of the one before, and returns its mark. */
export function keepDraft(sheets: Sheet[]): string {
  held = written(sheets);
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(held));
  } catch {
    /* it is too long, or nothing may be kept: it stays while the page is open */
  }
  return markOf(held);
}

/** keptDraft is the draft that was kept last. */
export function keptDraft(): Sheet[] {
  if (held) return held;
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEPT) ?? '[]');
    held = Array.isArray(kept) ? kept.filter((s: Partial<Sheet> | null): s is Sheet => typeof s?.name === 'string' && typeof s.text === 'string') : [];
  } catch {
    held = [];
  }
  return held;
}

/** forgetDraft is for tests: as in a new tab, but for what the tab keeps. */
export function forgetDraft(): void {
  held = null;
}
