import { useEffect, useRef, type ReactNode } from 'react';
import css from './over.module.css';

/** Over is a dialog in the middle, above everything. Esc, or a click beside it, closes it. */
export function Over({ label, onClose, children }: { label: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    // A click on the backdrop is one on the dialog itself. Esc does the same for the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/click-events-have-key-events
    <dialog ref={dialog} data-over className={css.over} aria-label={label} onClose={onClose} onClick={(e) => e.target === dialog.current && dialog.current.close()}>
      <div className={css.body}>{children}</div>
    </dialog>
  );
}
