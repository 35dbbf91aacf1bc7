import { useLinks } from '../../kit/address';
import { Empty, Question } from '../../kit/Card';
import { Life } from '../../kit/Credential';
import { Drawer } from '../../kit/Drawer';
import { Name, Whole } from '../../kit/Name';
import { clean } from '../../kit/words';
import { useCredential } from './queries';
import css from './subject.module.css';

/** CredentialDrawer shows the life of a credential beside a page. */
export default function CredentialDrawer({ id = '' }: { id?: string }) {
  const { here, change } = useLinks();
  const asks = useCredential(id);
  return (
    <Drawer title="Credential" label="Credential" onClose={() => change({ credential: null })}>
      {asks.error?.status === 404 ? <Empty>{clean(asks.error.message)}</Empty> : (
        <Question asks={asks} lines={10} empty={(a) => !a.credentials.length && <>No stored request tells of <Name>{id}</Name>.</>}>
          {(a) => (
            <article className={css.credential}>
              <h2><Whole>{id}</Whole></h2>
              {a.credentials.map((c, i) => <Life key={i} of={c} opens={(why) => here({ why, request: null })} />)}
            </article>
          )}
        </Question>
      )}
    </Drawer>
  );
}
