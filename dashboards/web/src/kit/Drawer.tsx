import { useEffect, useRef, type ReactNode } from 'react';
import css from './drawer.module.css';

/** Drawer shows something beside the page. On a wide screen the page stays in use; on a narrow one it is covered. Esc closes it;
 *  the focus goes back to where it was. */
export function Drawer({ title, label, onClose, children }: { title: ReactNode; label: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = useRef(onClose);
  useEffect(() => {
    close.current = onClose;
  }, [onClose]);
  useEffect(() => {
    const it = dialog.current;
    if (!it) return;
    const from = document.activeElement as HTMLElement | null;
    const narrow = matchMedia('(max-width: 1000px)').matches;
    if (narrow) it.showModal();
    else it.show();
    it.focus();
    const key = (e: KeyboardEvent) => {
      // What lies above the drawer (a menu, the search) is closed first, by the browser.
      if (e.key !== 'Escape' || e.defaultPrevented || document.querySelector('[popover]:popover-open, dialog[data-over][open]')) return;
      e.preventDefault();
      close.current();
    };
    addEventListener('keydown', key);
    return () => {
      removeEventListener('keydown', key);
      it.close();
      if (from?.isConnected) from.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={dialog} className={css.drawer} aria-label={label} tabIndex={-1} onCancel={(e) => { e.preventDefault(); onClose(); }}>
      <header className={css.head}>
        <div className={css.title}>{title}</div>
        <button type="button" className="plain" aria-label="Close" onClick={onClose}><span aria-hidden>✕</span></button>
      </header>
      {children}
    </dialog>
  );
}
