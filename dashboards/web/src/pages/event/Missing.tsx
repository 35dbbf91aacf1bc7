import type { Schemas } from '../../api/ask';
import { Name, Request, Subject } from '../../kit/Name';
import type { Opens } from './Aside';
import css from './event.module.css';

/** Missing says that there is no request of an audit ID, and names those whose IDs begin with it. */
export function Missing({ id, like, opens }: { id: string; like: Schemas['LikeRequest'][] | undefined; opens: Opens }) {
  return (
    <>
      <p>No stored request of this cluster carries the audit ID <Name>{id}</Name>.{like?.length ? ' These begin with it:' : ''}</p>
      {like?.length ? <ul className={css.lines}>{like.map((e) => <li key={e.request}><a href={opens(e.auditID, e.request)}><Name>{e.auditID}</Name></a> <Subject>{e.subject}</Subject> <Request verb={e.verb} uri={e.requestURI} /></li>)}</ul> : null}
    </>
  );
}
