import type { Schemas } from '../api/ask';
import { Text } from './Copy';
import { clean } from './words';
import css from './steps.module.css';

/** Steps shows how far a cluster's connection is, and what to do for the step that waits. */
export function Steps({ list }: { list: Schemas['DoctorStep'][] }) {
  const next = list.findIndex((s) => s.state !== 'done');
  return (
    <ol className={css.steps}>
      {list.map((s, i) => (
        <li key={s.id} data-state={s.state}>
          <b>{s.title}</b> <span className="soft">{clean(s.state)}</span>
          {s.text && <p>{clean(s.text)}</p>}
          {s.todo && (i === next || s.state === 'failed') && <Text label={`What to do: ${s.title}`}>{s.todo}</Text>}
        </li>
      ))}
    </ol>
  );
}

/** connects reports whether a cluster is one that sends, and not there yet: one that was imported is not connected and need not be. */
export function connects(steps: Schemas['DoctorStep'][] | undefined): boolean {
  return steps?.find((s) => s.id === 'registered')?.state === 'done' && steps.some((s) => s.state !== 'done');
}
