import { useId, useRef, useState, type ReactNode } from 'react';
import css from './menu.module.css';

/** Menu is a button that opens a small panel beside it: light to dismiss, and closed by Esc, as the browser's popovers are.
 *  Choosing a link or a button with data-done in it closes it too. */
export function Menu({ label, name, children, plain }: { label: ReactNode; name?: string; children: ReactNode; plain?: boolean }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const place = (opens: boolean) => {
    setOpen(opens);
    if (!opens || !button.current || !panel.current) return;
    const at = button.current.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = panel.current;
    const below = at.bottom + 6 + height <= innerHeight || at.top < height + 6;
    panel.current.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 12))}px`;
    panel.current.style.top = `${below ? at.bottom + 6 : at.top - 6 - height}px`;
  };
  return (
    <>
      <button type="button" ref={button} popoverTarget={id} aria-expanded={open} aria-label={name} className={plain ? 'plain' : undefined}>
        {label}<span aria-hidden className={css.arrow} />
      </button>
      {/* The controls are in the panel, which only closes when one of them was used. */}
      {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
      <div id={id} ref={panel} popover="auto" className={css.panel} onToggle={(e) => place(e.newState === 'open')}
        onClick={(e) => (e.target as Element).closest('a, [data-done]') && panel.current?.hidePopover()}>
        {children}
      </div>
    </>
  );
}
