import { Who } from '../../kit/Name';
import { Tag } from '../../kit/Tag';
import type { Write } from './queries';
import { EFFECTS } from './words';

/** Author is who made a write. Of some only the effect was seen. */
export function Author({ of: w }: { of: Write }) {
  if (!w.user) return <span className="soft">(no request stored)</span>;
  return <><Who subject={w.user} most={80} />{w.actingAs && <span className="soft"> as <Who subject={w.actingAs} most={80} /></span>}</>;
}

/** Effect says whether a write changed what anybody can do. */
export function Effect({ of }: { of: string }) {
  return <Tag tone={EFFECTS[of]?.tone ?? 'none'}>{EFFECTS[of]?.text ?? 'Not known'}</Tag>;
}
