import { pathOf, useLinks } from '../../kit/address';
import { Question } from '../../kit/Card';
import { Page } from '../../kit/Page';
import { Missing } from './Missing';
import { useWhy } from './queries';
import { Requests } from './Requests';

/** Event answers: why was this request decided as it was? */
export default function Event({ id = '' }: { id?: string }) {
  const { to } = useLinks();
  const asks = useWhy(id);
  const opens = (auditID: string, request?: string) => to(pathOf('events', auditID), { request });
  return (
    <Page title="Request" lead="Why it was decided as it was.">
      <Question asks={asks} lines={16} empty={(a) => !a.requests.length && <Missing id={id} like={a.like} opens={opens} />}>
        {(answer) => <div data-page><Requests answer={answer} opens={opens} /></div>}
      </Question>
    </Page>
  );
}
