import { QueryClientProvider } from '@tanstack/react-query';
import { Component, Suspense, useEffect, useRef, useState, type ReactNode } from 'react';
import { newClient } from '../api/client';
import { go, match, useLinks } from '../kit/address';
import { Card, Failed, Pending } from '../kit/Card';
import { ScopeProvider, useKnown } from '../kit/scope';
import { clean, short } from '../kit/words';
import { now } from './former';
import { Frame } from './Frame';
import { NoEvents, UnknownAddress, UnknownCluster } from './Nothing';
import { DRAWERS, PAGES, type Page } from './pages';

/** App is all of it. */
export function App() {
  const [client] = useState(newClient);
  return <QueryClientProvider client={client}><ScopeProvider><Routed /></ScopeProvider></QueryClientProvider>;
}

/** find returns the page of a path, and what stands for the names in its pattern. */
export function find(path: string): [Page, Record<string, string>] | null {
  for (const page of PAGES) {
    const names = match(page.path, path);
    if (names) return [page, names];
  }
  return null;
}

function Routed() {
  const { path, params } = useLinks();
  const { cluster } = useKnown();
  const old = now(path, params);
  useEffect(() => {
    if (old) go(old, 'replace');
  }, [old]);

  const found = find(path);
  const title = [found ? found[0].title : 'Unknown address', ...Object.values(found?.[1] ?? {}), cluster?.name, 'Retrial'];
  const text = title.filter(Boolean).map((s) => clean(short(s ?? '', 80))).join(' · ');
  useEffect(() => {
    document.title = text;
  }, [text]);

  // Who follows a link is at the top of what it leads to, with eyes and with a screen reader.
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) {
      scrollTo(0, 0);
      document.getElementById('main')?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [path]);

  return (
    <Frame place={found?.[0].place ?? found?.[0].path}>
      <Guard key={path}>
        <Suspense fallback={<Pending lines={8} />}>{old ? null : found ? <Scoped page={found[0]} names={found[1]} /> : <UnknownAddress path={path} />}</Suspense>
      </Guard>
      <Beside />
    </Frame>
  );
}

/** Scoped shows a page when there is a cluster for it to be about. */
function Scoped({ page, names }: { page: Page; names: Record<string, string> }) {
  const { clusters, cluster, failure, catchUp } = useKnown();
  const { params } = useLinks();
  if (cluster) return <page.show key={cluster.name + JSON.stringify(names)} {...names} />;
  if (!clusters) return failure ? <Card title="Nothing can be shown"><Failed error={failure} again={catchUp} /></Card> : <Pending lines={8} />;
  if (!clusters.length && !params.get('cluster')) return <NoEvents />;
  return params.get('cluster') ? <UnknownCluster name={params.get('cluster') ?? ''} clusters={clusters} /> : null;
}

/** Beside is the drawer that the address opens. */
function Beside() {
  const { cluster } = useKnown();
  const { params } = useLinks();
  const open = DRAWERS.find((d) => params.get(d.parameter));
  if (!cluster || !open) return null;
  return <Guard key={open.parameter}><Suspense fallback={<span hidden aria-busy />}><open.show id={params.get(open.parameter) ?? ''} /></Suspense></Guard>;
}

/** Guard shows what went wrong in a page in the page's place: the rest stays in use. */
class Guard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Card title="This page failed">
        <p>If the server was upgraded meanwhile, its files are others now: load the page again.</p>
        <Failed error={this.state.error} again={() => location.reload()} />
      </Card>
    );
  }
}
