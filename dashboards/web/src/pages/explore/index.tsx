import { useLinks } from '../../kit/address';
import { Card } from '../../kit/Card';
import { Page } from '../../kit/Page';
import { Chips } from './Chips';
import { changesTo, conditionsOf, same } from './conditions';
import { Facets } from './Facets';
import { Field } from './Field';
import { Histogram } from './Histogram';
import { List } from './List';
import { Views } from './Views';
import css from './explore.module.css';

/** Explore answers: show me these requests. */
export default function Explore() {
  const { params, change } = useLinks();
  const list = conditionsOf(params);
  return (
    <Page title="Explore" lead="Every request of the audit log, newest first. Open one to see why it was decided that way.">
      <div className={css.query} role="group" aria-label="Filters">
        <Field list={list} onAdd={(c) => !list.some((x) => same(x, c)) && change(changesTo([...list, c]))} onLast={() => change(changesTo(list.slice(0, -1)))} />
        <Views />
        <Chips list={list} />
      </div>
      <Histogram list={list} />
      <div className={css.columns}>
        <aside className={css.facets} aria-label="Counts by column"><Narrow><Facets list={list} /></Narrow></aside>
        <List list={list} />
      </div>
    </Page>
  );
}

/** Narrow folds the facets on a narrow screen: there the requests come first. */
function Narrow({ children }: { children: React.ReactNode }) {
  if (!matchMedia('(max-width: 1000px)').matches) return <Card title="Counts">{children}</Card>;
  return <details className={css.folded}><summary>Counts by column</summary>{children}</details>;
}
