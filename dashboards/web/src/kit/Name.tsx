import { useState } from 'react';
import { pathOf, useLinks } from './address';
import { clean, short } from './words';
import css from './name.module.css';

/** Name shows a string of an audit event: isolated from the text around it, so that right-to-left names do not reorder their
 *  neighbours; unreadable characters as escapes; cut when it is long, the whole of it on request. */
export function Name({ children, most = 160, plain }: { children: string | null | undefined; most?: number; plain?: boolean }) {
  const text = children ?? '';
  return <bdi className={plain ? undefined : css.name}>{clean(short(text, most))}</bdi>;
}

/** Whole is a Name that can be unfolded where it was cut. */
export function Whole({ children, most = 400 }: { children: string; most?: number }) {
  const [open, setOpen] = useState(false);
  if (children.length <= most + 20) return <Name most={most}>{children}</Name>;
  return <><Name most={open ? Infinity : most}>{children}</Name> <button type="button" className={css.more} aria-expanded={open} onClick={() => setOpen(!open)}>{open ? 'Less' : 'All of it'}</button></>;
}

/** Names shows several, each apart from the others; most of them at once. beyond are further ones that are only counted. */
export function Names({ list, most = 12, beyond = 0 }: { list: string[] | null | undefined; most?: number; beyond?: number }) {
  if (!list?.length) return <span className="soft">(none)</span>;
  const rest = Math.max(0, list.length - most) + beyond;
  return (
    <>
      {list.slice(0, most).map((s, i) => <span key={i}>{i > 0 && ', '}<Name most={200}>{s}</Name></span>)}
      {rest > 0 && <span className="soft"> and {rest.toLocaleString('en-US')} more</span>}
    </>
  );
}

/** Who shows a subject as a link to its page. */
export function Who({ subject, most = 90 }: { subject: string | null | undefined; most?: number }) {
  const { to } = useLinks();
  if (!subject) return <span className="soft">(no user)</span>;
  return <a className={css.link} href={to(pathOf('subjects', subject))}><Name most={most}>{subject}</Name></a>;
}
