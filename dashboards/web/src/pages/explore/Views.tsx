// Saved views: what is chosen on the page, under a name, kept by the browser.
import { useState } from 'react';
import { useLinks } from '../../kit/address';
import { Menu } from '../../kit/Menu';
import { Name } from '../../kit/Name';
import { keep, recall } from '../../kit/preferences';
import { clean, short } from '../../kit/words';
import css from './explore.module.css';

interface View {
  name: string;
  query: string;
}

/** What a view has: all but the cluster, what is open beside the page, and the place in a list. */
const LEFT_OUT = ['cluster', 'why', 'request', 'before', 'live'];

/** Views opens, saves and deletes them. */
export function Views() {
  const { path, params } = useLinks();
  const [list, setList] = useState(saved);
  const [name, setName] = useState('');
  const store = (next: View[]) => {
    setList(next);
    keep('views', JSON.stringify(next));
  };
  const now = new URLSearchParams(params);
  for (const k of LEFT_OUT) now.delete(k);
  const href = (v: View) => {
    const p = new URLSearchParams(v.query);
    p.set('cluster', params.get('cluster') ?? '');
    return `#${path}?${p}`;
  };
  const given = name.trim();
  return (
    <Menu label="Views">
      <div className={css.views}>
        {list.length ? (
          <ul>
            {list.map((v) => (
              <li key={v.name}>
                <a href={href(v)} aria-current={v.query === now.toString() || undefined}><Name plain most={60}>{v.name}</Name></a>
                <button type="button" className="plain" aria-label={`Delete the view ${clean(short(v.name, 60))}`} onClick={() => store(list.filter((x) => x !== v))}><span aria-hidden>✕</span></button>
              </li>
            ))}
          </ul>
        ) : <p className="soft">No views are saved in this browser.</p>}
        <form onSubmit={(e) => {
          e.preventDefault();
          if (!given) return;
          store([...list.filter((v) => v.name !== given), { name: given, query: now.toString() }]);
          setName('');
        }}>
          <label>Save what is shown as <input value={name} maxLength={80} onChange={(e) => setName(e.target.value)} placeholder="a name" /></label>
          <button type="submit" className="primary" disabled={!given}>{list.some((v) => v.name === given) ? 'Replace' : 'Save'}</button>
        </form>
      </div>
    </Menu>
  );
}

function saved(): View[] {
  try {
    const kept = JSON.parse(recall('views') ?? '[]') as unknown;
    return Array.isArray(kept) ? (kept as Partial<View>[]).flatMap((v) => (typeof v?.name === 'string' && typeof v.query === 'string' ? [{ name: v.name, query: v.query }] : [])) : [];
  } catch {
    return [];
  }
}
