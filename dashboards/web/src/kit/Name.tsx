import { useState } from 'react';
import { pathOf, useLinks } from './address';
import { accountOf, asked } from './request';
import { clean, short } from './words';
import css from './name.module.css';

/** Longer names tell all of themselves when they are pointed at: tables cut what does not fit. */
const LONG = 24;

/** Name shows a string of an audit event: isolated from the text around it, so that right-to-left names do not reorder their
 *  neighbours; unreadable characters as escapes; cut when it is long. */
export function Name({ children, most = 160, plain }: { children: string | null | undefined; most?: number; plain?: boolean }) {
  const text = children ?? '';
  return <bdi className={plain ? undefined : css.name} title={told(text)}>{clean(short(text, most))}</bdi>;
}

/** Whole is a Name that can be unfolded where it was cut. */
export function Whole({ children, most = 400 }: { children: string; most?: number }) {
  const [open, setOpen] = useState(false);
  if (children.length <= most + 20) return <Name most={most}>{children}</Name>;
  return (
    <>
      <Name most={open ? Infinity : most}>{children}</Name>{' '}
      <button type="button" className={css.more} aria-expanded={open} onClick={() => setOpen(!open)}>{open ? 'Less' : 'All of it'}</button>
    </>
  );
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

/** Subject shows a user name; a service account's as the commands write it, sa/NAMESPACE:NAME. */
export function Subject({ children, most = 90 }: { children: string | null | undefined; most?: number }) {
  if (!children) return <span className="soft">(no user)</span>;
  const account = accountOf(children);
  return account ? <bdi className={css.name} title={told(children)}><span className="soft">sa/</span>{clean(short(account, most))}</bdi> : <Name most={most}>{children}</Name>;
}

/** Who shows a subject as a link to its page. */
export function Who({ subject, most }: { subject: string | null | undefined; most?: number }) {
  const { to } = useLinks();
  if (!subject) return <Subject>{subject}</Subject>;
  return <a className={css.link} href={to(pathOf('subjects', subject))}><Subject most={most}>{subject}</Subject></a>;
}

/** Request shows what a request asked for: its verb, its resource and the object's name, and where. Its address is told when it is
 *  pointed at. */
export function Request({ verb, uri }: { verb: string; uri: string }) {
  const { resource, namespace, name, path } = asked(verb, uri);
  return (
    <span title={clean(short(`${verb} ${uri}`, 1000))}>
      <b className={css.verb}><Name plain most={30}>{verb || '–'}</Name></b>{' '}
      <Name most={200}>{resource ?? path}</Name>
      {name !== undefined && <> <Name most={120}>{name}</Name></>}
      {namespace !== undefined && resource !== 'namespaces' && <span className="soft"> in <Name most={80}>{namespace}</Name></span>}
    </span>
  );
}

function told(text: string): string | undefined {
  return text.length > LONG ? clean(short(text, 1000)) : undefined;
}
