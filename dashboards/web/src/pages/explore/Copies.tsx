import { useLinks } from '../../kit/address';
import { Copy, fileName, save } from '../../kit/Copy';
import { Menu } from '../../kit/Menu';
import { useScope } from '../../kit/scope';
import { plural } from '../../kit/words';
import type { Condition } from './conditions';
import { commandOf, csvOf, questionOf, sqlOf } from './copies';
import type { Event } from './queries';
import css from './explore.module.css';

/** Copies hands the list on: as a command, as SQL, as CSV of the rows that are loaded. */
export function Copies({ list, rows }: { list: Condition[]; rows: Event[] }) {
  const { cluster, from, to } = useScope();
  const { path } = useLinks();
  const asked = { cluster, from, to };
  return (
    <Menu label="Copy">
      <div className={css.copies}>
        <Copy text={commandOf(asked, list)} what="as command" />
        <Copy text={questionOf(asked, list)} what="as API request" />
        <Copy text={sqlOf(asked, list)} what="as SQL" />
        <Copy text={csvOf(rows)} what={`as CSV, ${plural(rows.length, 'row')}`} />
        <button type="button" data-done disabled={!rows.length} onClick={() => save(`${fileName('retrial', cluster, path)}.csv`, csvOf(rows))}>Save as CSV</button>
      </div>
    </Menu>
  );
}
