import { useIsFetching } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { useLinks } from '../kit/address';
import { Menu } from '../kit/Menu';
import { prefer, usePreference } from '../kit/preferences';
import { RangePicker } from '../kit/RangePicker';
import { useKnown } from '../kit/scope';
import { clean, plural } from '../kit/words';
import { Help } from './Help';
import { useKeys } from './keys';
import { PAGES } from './pages';
import { Search } from './Search';
import css from './frame.module.css';

/** Frame is what every page is in: navigation, cluster, range, search, and where the server stands. */
export function Frame({ place, children }: { place: string | undefined; children: ReactNode }) {
  const [over, setOver] = useState<'search' | 'help' | null>(null);
  useKeys({ search: () => setOver('search'), help: () => setOver('help') });
  useTheme();
  const asking = useIsFetching({ predicate: (q) => q.state.data === undefined && q.queryKey[0] !== 'complete' }) > 0;
  return (
    <div className={css.frame}>
      <a className={css.skip} href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
      <header className={css.bar}>
        <Brand />
        <Cluster />
        <RangePicker />
        <div className={css.right}>
          <News />
          <Status />
          <button type="button" className={css.search} onClick={() => setOver('search')} aria-label="Search" aria-keyshortcuts="/ Control+K"><Lens /><span>Search</span><kbd aria-hidden>/</kbd></button>
          <Settings onHelp={() => setOver('help')} />
        </div>
      </header>
      <Navigation place={place} />
      <main id="main" className={css.main} tabIndex={-1} aria-busy={asking || undefined}>{children}</main>
      {over === 'search' && <Search onClose={() => setOver(null)} />}
      {over === 'help' && <Help onClose={() => setOver(null)} />}
    </div>
  );
}

function Brand() {
  const { to } = useLinks();
  return <a className={css.brand} href={to('/')} aria-label="Retrial: Today"><img src="./icon.svg" alt="" width="24" height="24" /><span aria-hidden>Retrial</span></a>;
}

function Navigation({ place }: { place: string | undefined }) {
  const { to } = useLinks();
  return (
    <nav className={css.nav} aria-label="Pages">
      {PAGES.filter((p) => p.key).map((p) => <a key={p.path} href={to(p.path)} aria-current={p.path === place ? 'page' : undefined}>{p.title}</a>)}
    </nav>
  );
}

/** Cluster chooses one. Another has other times and other subjects: only a range that is relative is kept. */
function Cluster() {
  const { clusters, cluster } = useKnown();
  const { path, params } = useLinks();
  if (!clusters?.length) return null;
  const choose = (name: string) => {
    const kept = new URLSearchParams({ cluster: name });
    if (params.get('range')) kept.set('range', params.get('range') ?? '');
    const section = '/' + (path.split('/')[1] ?? '');
    location.hash = `#${PAGES.some((p) => p.path === section) ? section : '/'}?${kept}`;
  };
  return (
    <label className={css.cluster}>
      <span className="unseen">Cluster</span>
      <select value={cluster?.name ?? ''} onChange={(e) => choose(e.target.value)}>
        {!cluster && <option value="">Choose a cluster</option>}
        {clusters.map((c) => <option key={c.name} value={c.name}>{clean(c.name)}</option>)}
      </select>
    </label>
  );
}

function Lens() {
  return <svg aria-hidden width="15" height="15" viewBox="0 0 16 16" fill="none" stroke="currentcolor" strokeWidth="1.7" strokeLinecap="round"><circle cx="7" cy="7" r="4.6" /><path d="m10.6 10.6 3.4 3.4" /></svg>;
}

/** News waits until the reader asks for it. */
function News() {
  const { news, catchUp } = useKnown();
  return <span role="status">{news && <button type="button" className={css.news} onClick={catchUp}>Show what is new</button>}</span>;
}

/** Status says where the server stands. */
function Status() {
  const { status, failure } = useKnown();
  const [state, text, title] = failure
    ? ['down', 'Server not reached', failure.message]
    : !status ? ['', '', '']
    : status.lag ? ['behind', `${plural(status.lag, 'event')} to judge`, 'They have arrived and await their verdict. The page follows.']
    : status.policyLag + status.corrections ? ['behind', 'Correcting verdicts', 'Policy changes arrived late; the requests they concern are judged again.']
    : ['', 'Up to date', `Everything that has arrived is shown. Version ${status.version}`];
  return <span className={css.status} role="status" data-state={state} title={clean(title)}>{text}</span>;
}

/** Settings are the reader's: colours and clock. */
function Settings({ onHelp }: { onHelp: () => void }) {
  const theme = usePreference('theme');
  const clock = usePreference('clock');
  return (
    <Menu label={<span aria-hidden className={css.dots}>•••</span>} name="Settings" plain>
      <div className={css.settings}>
        <fieldset><legend>Colours</legend>
          {(['system', 'light', 'dark'] as const).map((t) => <button key={t} type="button" aria-pressed={theme === t} onClick={() => prefer('theme', t)}>{t === 'system' ? 'As the system' : t === 'light' ? 'Light' : 'Dark'}</button>)}
        </fieldset>
        <fieldset><legend>Times</legend>
          {(['UTC', 'local'] as const).map((c) => <button key={c} type="button" aria-pressed={clock === c} onClick={() => prefer('clock', c)}>{c === 'UTC' ? 'UTC' : 'Local'}</button>)}
        </fieldset>
        <button type="button" className="plain" data-done onClick={onHelp}>Keyboard shortcuts <kbd>?</kbd></button>
      </div>
    </Menu>
  );
}

/** useTheme hands the preferred colours to the style sheet (kit/base.css). */
function useTheme() {
  const theme = usePreference('theme');
  useEffect(() => {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
}
