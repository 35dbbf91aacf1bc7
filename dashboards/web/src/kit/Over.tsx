import { useEffect, useRef, type ReactNode } from 'react';
import css from './over.module.css';

/** Over is a dialog in the middle, above everything. Esc, or a click beside it, closes it.
 *  A browser tells later, in a task, that a dialog was closed: what is typed by then would still find it open. So it is told here. */
export function Over({ label, onClose, children }: { label: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = useRef(() => {});
  useEffect(() => {
    close.current = () => {
      dialog.current?.close(); // the focus goes back to where it was
      onClose();
    };
  }, [onClose]);
  useEffect(() => {
    dialog.current?.showModal();
    const key = (e: KeyboardEvent) => {
      if (e.key !== 'Escape' || e.isComposing || e.defaultPrevented) return;
      e.preventDefault();
      close.current();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  return (
    // A click on the backdrop is one on the dialog itself. Esc does the same for the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/click-events-have-key-events
    <dialog ref={dialog} data-over className={css.over} aria-label={label} onClose={onClose} onClick={(e) => e.target === dialog.current && close.current()}>
      <div className={css.body}>{children}</div>
    </dialog>
  );
}
