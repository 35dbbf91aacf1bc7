import { memo, useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { useLinks } from './address';
import { Menu } from './Menu';
import { MANY, ordered, orderedInSlices } from './order';
import { useShown } from './rows';
import css from './table.module.css';

/** Column is one of a table. */
export interface Column<Row> {
  /** id names it in the address. */
  id: string;
  head: string;
  cell: (row: Row) => ReactNode;
  /** width is a track of a CSS grid: '120px', 'minmax(140px, 2fr)'. It must not depend on what is in the rows beyond the screen. */
  width: string;
  /** leads: this cell is the link of a row that leads somewhere; else the first is. */
  leads?: boolean;
  /** wrap lets the text take several lines; else what does not fit is cut. */
  wrap?: boolean;
  /** number aligns to the right. */
  number?: boolean;
  /** labelled: a block of a narrow screen says the column's name. Numbers always do. */
  labelled?: boolean;
  /** extra columns are shown when they are chosen. */
  extra?: boolean;
  /** sorts is what rows are ordered by when the column's head is chosen, the largest first; texts from A to Z. */
  sorts?: (row: Row) => number | string;
}

interface Props<Row> {
  /** label names the table for screen readers. */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  /** href is where a row leads. */
  href?: (row: Row) => string | undefined;
  /** current is the key of the row that is open beside the table. */
  current?: string | null;
  /** more is called when the end comes near; pending says that it was. */
  more?: (() => void) | undefined;
  pending?: boolean;
  /** sort is what useSort returned for the same columns. */
  sort?: Sort;
}

/** Sort says by which column rows are ordered. */
export interface Sort {
  by: string;
  /** up: the smallest first, or Z to A. */
  up: boolean;
  /** to is the address of the page ordered by a column; by the other end where it already is. */
  to: (column: string) => string;
}

/** Tables with fewer rows have all of them in the page: the browser's own search finds them. */
const FEW = 60;
/** More is asked for so many rows before the end. */
const NEAR = 24;

/** DataTable shows rows of any number. A row with href is a link as a whole, and a stop of j and k; on a narrow screen every row
 *  is a block with its columns' names. */
export function DataTable<Row>({ label, columns, rows, rowKey, href, current, more, pending, sort }: Props<Row>) {
  const { frame, first, end, before, after } = useShown(rows.length, rows.length > FEW);
  useEffect(() => {
    if (more && !pending && end >= rows.length - NEAR) more();
  }, [end, more, pending, rows.length]);

  return (
    <div className={css.table} role="table" aria-label={label} aria-rowcount={more ? -1 : rows.length + 1}
      style={{ '--tracks': columns.map((c) => c.width).join(' ') } as React.CSSProperties}>
      <div role="rowgroup" className={css.heads}>
        <div role="row" aria-rowindex={1} className={css.row}>
          {columns.map((c) => (
            <span key={c.id} role="columnheader" className={css.head} data-number={c.number || undefined} aria-sort={c.sorts && sort?.by === c.id ? (sort.up ? 'ascending' : 'descending') : undefined}>
              {c.sorts && sort ? <a href={sort.to(c.id)}>{c.head}</a> : c.head}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" className={css.rows} ref={frame} style={{ paddingTop: before, paddingBottom: after }}>
        {rows.slice(first, end).map((row, i) => {
          const key = rowKey(row);
          return <Line key={key} row={row} index={first + i} columns={columns as Column<unknown>[]} to={href?.(row)} current={key === current} />;
        })}
      </div>
      {pending && <p className={css.pending} role="status">Loading more…</p>}
    </div>
  );
}

/** Line is a row. It is drawn again when something of it is another, and not when others come and go. */
const Line = memo(function Line({ row, index, columns, to, current }: { row: unknown; index: number; columns: Column<unknown>[]; to: string | undefined; current: boolean }) {
  const leads = Math.max(0, columns.findIndex((c) => c.leads));
  return (
    <div role="row" aria-rowindex={index + 2} className={css.row} data-index={index} data-current={current || undefined}>
      {columns.map((c, i) => (
        <div key={c.id} role="cell" className={css.cell} data-number={c.number || undefined} data-label={(c.number || c.labelled) && i !== leads ? c.head : undefined} data-wrap={c.wrap || undefined} data-leads={i === leads || undefined}>
          {i === leads && to ? <a className={css.open} href={to} data-row aria-current={current || undefined}>{c.cell(row)}</a> : c.cell(row)}
        </div>
      ))}
    </div>
  );
});

/** useSort orders rows by what the address names (sort: a column, -column for the other end), else by the given column. Many rows stay
 *  as they are until they are ordered. */
export function useSort<Row>(columns: Column<Row>[], rows: Row[], usual: string): { sorted: Row[]; sort: Sort } {
  const { params, here } = useLinks();
  const asked = params.get('sort') ?? usual;
  const up = asked.startsWith('-');
  const column = columns.find((c) => c.sorts && c.id === asked.replace(/^-/, '')) ?? columns.find((c) => c.id === usual);
  const by = column?.sorts;
  const many = rows.length > MANY;
  const few = useMemo(() => (many || !by ? rows : ordered(rows, by, up)), [rows, by, up, many]);
  const [late, setLate] = useState<{ of: Row[]; sorted: Row[] }>();
  useEffect(() => {
    if (!many || !by) return;
    const stop = new AbortController();
    orderedInSlices(rows, by, up, stop.signal).then((sorted) => setLate({ of: rows, sorted }), () => undefined);
    return () => stop.abort();
  }, [rows, by, up, many]);
  const now = column?.id ?? '';
  return { sorted: late?.of === rows ? late.sorted : few, sort: { by: now, up, to: (id) => here({ sort: id === now && !up ? `-${id}` : id === usual ? null : id }) } };
}

/** useColumns keeps which columns are shown in the address (cols); pick is the menu that chooses. */
export function useColumns<Row>(all: Column<Row>[]): { shown: Column<Row>[]; pick: ReactNode } {
  const { params, change } = useLinks();
  const chosen = params.get('cols')?.split(',');
  const isShown = useCallback((c: Column<Row>) => (chosen ? chosen.includes(c.id) : !c.extra), [chosen]);
  const shown = all.filter(isShown);
  const set = (c: Column<Row>, on: boolean) => {
    const next = all.filter((x) => (x === c ? on : isShown(x))).map((x) => x.id);
    const usual = all.filter((x) => !x.extra).map((x) => x.id);
    change({ cols: next.join() === usual.join() ? null : next.join() }, 'replace');
  };
  const pick = (
    <Menu label="Columns">
      <fieldset className={css.choose}>
        <legend className="unseen">Columns</legend>
        {all.map((c) => (
          <label key={c.id}>
            <input type="checkbox" checked={isShown(c)} disabled={isShown(c) && shown.length === 1} onChange={(e) => set(c, e.target.checked)} />
            {c.head}
          </label>
        ))}
      </fieldset>
    </Menu>
  );
  return { shown: shown.length ? shown : all, pick };
}
