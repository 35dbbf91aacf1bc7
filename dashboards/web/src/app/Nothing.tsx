// What is shown where there is nothing: what to do.
import type { Schemas } from '../api/ask';
import { useQuestion } from '../api/questions';
import { useLinks } from '../kit/address';
import { Card } from '../kit/Card';
import { Text } from '../kit/Copy';
import { Name } from '../kit/Name';
import { connects, Steps } from '../kit/Steps';
import { Time } from '../kit/Time';
import { plural } from '../kit/words';
import { PAGES } from './pages';
import css from './nothing.module.css';

/** NoEvents is for a store without any. */
export function NoEvents() {
  return (
    <div className={css.narrow}>
      <h1>No events yet</h1>
      <p>Retrial decides every request of a Kubernetes audit log a second time and compares the decisions. It needs a log: let an apiserver send one, or import a recorded one.</p>
      <Card title="A live cluster">
        <Text label="Command that connects a cluster">retrial connect NAME</Text>
        <p className="soft">makes a certificate, files and flags for the apiserver, and waits until its events arrive.</p>
      </Card>
      <Card title="A recorded log">
        <Text label="Commands that import a log">
          {'kubectl get roles,rolebindings,clusterroles,clusterrolebindings,namespaces,serviceaccounts -A -o json > state.json\nretrial import --cluster NAME --state state.json audit.log'}
        </Text>
        <p className="soft">This page shows them as soon as the first batch is stored.</p>
      </Card>
    </div>
  );
}

/** UnknownCluster is for a name of which nothing is stored: how far its connection is, and the others. */
export function UnknownCluster({ name, clusters }: { name: string; clusters: Schemas['Cluster'][] }) {
  const { here } = useLinks();
  const connection = useQuestion('connection', { cluster: name });
  const waits = connects(connection.data?.steps);
  return (
    <div className={css.narrow}>
      <h1>{waits ? 'Not connected yet' : 'No such cluster'}</h1>
      <p>There are no events of a cluster named <Name>{name}</Name>.{clusters.length > 0 && ' There are events of:'}</p>
      <ul className={css.near}>
        {clusters.map((c) => <li key={c.name}><a data-row href={here({ cluster: c.name })}><Name>{c.name}</Name></a> <span className="soft">{plural(c.events, 'event')}, until <Time at={c.last} /></span></li>)}
      </ul>
      {waits && <Card title="Connection" note="from the apiserver’s audit webhook to verdicts"><Steps list={connection.data?.steps ?? []} /></Card>}
    </div>
  );
}

/** UnknownAddress is for a path that no page has. */
export function UnknownAddress({ path }: { path: string }) {
  const { to } = useLinks();
  return (
    <div className={css.narrow}>
      <h1>Unknown address</h1>
      <p>There is no page at <Name>{path}</Name>. {near(path).length < PAGES.length ? 'Perhaps one of these is meant:' : 'There are:'}</p>
      <ul className={css.near}>{near(path).map((p) => <li key={p.path}><a data-row href={to(p.path)}>{p.title}</a> <span className="soft mono">{p.path}</span></li>)}</ul>
    </div>
  );
}

/** near returns the pages whose first segment resembles that of a path; all of those in the navigation if there are none. */
export function near(path: string): typeof PAGES {
  const first = path.split('/')[1]?.toLowerCase() ?? '';
  const listed = PAGES.filter((p) => p.key);
  const close = listed.filter((p) => distance(first, p.path.slice(1)) <= 2 || distance(first, p.title.toLowerCase()) <= 2 || (first.length > 2 && p.title.toLowerCase().startsWith(first)));
  return close.length ? close : listed;
}

/** distance is how many letters have to be written otherwise, and swapped neighbours count once. */
function distance(a: string, b: string): number {
  const d = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0)));
  const at = (i: number, j: number) => d[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      let best = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, at(i - 2, j - 2) + 1);
      (d[i] as number[])[j] = best;
    }
  }
  return at(a.length, b.length);
}
