import { pathOf, useLinks } from '../../kit/address';
import { Question } from '../../kit/Card';
import { Drawer } from '../../kit/Drawer';
import { Missing } from './Missing';
import { useWhy } from './queries';
import { Requests } from './Requests';
import css from './event.module.css';

/** EventDrawer shows the request of an audit ID beside a page. */
export default function EventDrawer({ id = '' }: { id?: string }) {
  const { params, here, to, change } = useLinks();
  const asks = useWhy(id);
  const gone = { why: null, request: null };
  const below = params.get('finding') ? 'Finding' : params.get('credential') ? 'Credential' : '';
  const opens = (why: string, request?: string) => here({ why, request });
  return (
    <Drawer label="Request" onClose={() => change(gone)}
      title={below ? <><a className={css.back} href={here(gone)}><span aria-hidden>← </span>{below}</a> Request</> : 'Request'}>
      <Question asks={asks} lines={12} empty={(a) => !a.requests.length && <Missing id={id} like={a.like} opens={opens} />}>
        {(answer) => <Requests answer={answer} opens={opens} page={to(pathOf('events', id), { request: params.get('request') })} />}
      </Question>
    </Drawer>
  );
}
