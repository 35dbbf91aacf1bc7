import type { Schemas } from '../../api/ask';
import { useLinks } from '../../kit/address';
import { Card, Empty, Question } from '../../kit/Card';
import { Life } from '../../kit/Credential';
import { Name } from '../../kit/Name';
import { clean, count, plural } from '../../kit/words';
import { useCredentials } from './queries';
import css from './subject.module.css';

/** Credentials shows what it authenticated with. Each leads to its life, from the request that issued it to every use. */
export function Credentials({ name }: { name: string }) {
  const { here } = useLinks();
  const asks = useCredentials(name);
  return (
    <Card title="Credentials" note="from issue to use">
      {asks.error?.status === 404 ? <Empty>{clean(asks.error.message)}</Empty> : (
        <Question asks={asks} lines={3} empty={(a) => !a.credentials.length && 'Its events tell of no credential.'}>
          {(a) => (
            <ul className={css.credentials}>
              {a.credentials.map((c, i) => (
                <li key={c.credential || i}>
                  {c.credential ? (
                    <><a data-row href={here({ credential: c.credential })}><Name most={48}>{c.credential}</Name></a> <Used of={c} /></>
                  ) : (
                    <details>
                      <summary data-row>Not told by the events <Used of={c} /></summary>
                      <Life of={c} opens={(why) => here({ why, request: null })} />
                    </details>
                  )}
                </li>
              ))}
              {a.truncated && <li className="soft">There are more credentials than shown here.</li>}
            </ul>
          )}
        </Question>
      )}
    </Card>
  );
}

function Used({ of: c }: { of: Schemas['Credential'] }) {
  const contradictions = c.contradictions?.length ?? 0;
  return (
    <span className="soft">
      {c.requests ? plural(c.requests, 'request') : 'never used'}{c.forbidden > 0 && `, ${count(c.forbidden)} refused`}
      {contradictions > 0 && <b className="bad"> · {plural(contradictions, 'contradiction')}</b>}
    </span>
  );
}
