import { Over } from '../kit/Over';
import { PAGES } from './pages';
import css from './over.module.css';

/** Help lists what the keyboard does. */
export function Help({ onClose }: { onClose: () => void }) {
  const keys: [keys: string[], does: string][] = [
    [['/'], 'Search: a page, a request, a subject'], [['Ctrl', 'K'], 'the same, from within a field'],
    [['j'], 'Next row'], [['k'], 'Row before'], [['Enter'], 'Open the row'], [['Esc'], 'Close what is open'], [['?'], 'This list'],
    ...PAGES.filter((p) => p.key).map((p): [string[], string] => [['g', p.key ?? ''], p.title]),
  ];
  return (
    <Over label="Keyboard shortcuts" onClose={onClose}>
      <h2 className={css.title}>Keyboard shortcuts</h2>
      <dl className={css.keys}>
        {keys.map(([k, does]) => <div key={does}><dt>{k.map((x) => <kbd key={x}>{x}</kbd>)}</dt><dd>{does}</dd></div>)}
      </dl>
    </Over>
  );
}
