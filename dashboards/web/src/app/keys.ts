// The keyboard: / and Ctrl-K search, ? helps, j and k go from row to row, g and a letter open a page. Esc belongs to what is open.
import { useEffect, useRef } from 'react';
import { go, useLinks } from '../kit/address';
import { PAGES } from './pages';

interface Actions {
  search: () => void;
  help: () => void;
}

/** useKeys listens while the page is there. */
export function useKeys(actions: Actions): void {
  const { to } = useLinks();
  const now = useRef({ ...actions, to });
  useEffect(() => {
    now.current = { ...actions, to };
  });
  useEffect(() => {
    let went = 0; // when g was pressed
    const press = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === 'k') {
        e.preventDefault();
        now.current.search();
        return;
      }
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || writing(e.target) || document.querySelector('dialog[data-over][open]')) return;
      const page = Date.now() - went < 1500 && PAGES.find((p) => p.key === e.key);
      went = e.key === 'g' ? Date.now() : 0;
      if (page) go(now.current.to(page.path));
      else if (e.key === '/') now.current.search();
      else if (e.key === '?') now.current.help();
      else if (e.key === 'j' || e.key === 'k') step(e.key === 'j' ? 1 : -1);
      else return;
      e.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

/** step moves the focus to the next row or the one before, in what lies on top; with the drawer open, to what it should show. */
export function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('#main [data-row]')].filter((r) => r.offsetParent !== null || r.getClientRects().length > 0);
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const shown = rows.findIndex((r) => r.ariaCurrent === 'true');
  const beside = document.querySelector('dialog[open]') !== null && shown >= 0;
  const next = rows[beside ? shown + by : at >= 0 ? at + by : beyond(rows, by)];
  if (!next) return;
  if (beside && next instanceof HTMLAnchorElement) go(next.getAttribute('href') ?? '', 'replace');
  else next.focus({ preventScroll: true });
  (next.closest('[role="row"]') ?? next).scrollIntoView({ block: 'nearest' });
}

/** beyond is the row that follows what has the focus, or the one before it; from nowhere, the first and the last. */
function beyond(rows: HTMLElement[], by: 1 | -1): number {
  const from = document.activeElement;
  if (!from?.closest('#main *')) return by > 0 ? 0 : rows.length - 1;
  const after = rows.findIndex((r) => from.compareDocumentPosition(r) & Node.DOCUMENT_POSITION_FOLLOWING);
  return by > 0 ? after : (after < 0 ? rows.length : after) - 1;
}

function writing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
