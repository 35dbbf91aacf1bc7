import { useLinks } from '../../kit/address';
import { Card } from '../../kit/Card';
import { Name } from '../../kit/Name';
import { Page } from '../../kit/Page';
import { CanForm, WhoForm } from './Ask';
import { Holders } from './Holders';
import { Moments } from './Moments';
import { useAsking } from './queries';
import { Difference, Rights } from './Rights';
import css from './access.module.css';

/** QUESTIONS that are worth asking of every cluster. */
const QUESTIONS: [text: string, asks: Record<string, string>][] = [
  ['read Secrets', { verb: 'list', resource: 'secrets' }],
  ['run commands in pods', { verb: 'create', resource: 'pods/exec' }],
  ['do everything', { verb: '*', resource: '*.*' }],
  ['bind themselves to any role', { verb: 'create', resource: 'clusterrolebindings.rbac.authorization.k8s.io' }],
  ['act as anybody', { verb: 'impersonate', resource: 'users' }],
  ['create tokens of service accounts', { verb: 'create', resource: 'serviceaccounts/token' }],
  ['change admission webhooks', { verb: 'update', resource: 'validatingwebhookconfigurations.admissionregistration.k8s.io' }],
  ['read the metrics', { verb: 'get', path: '/metrics' }],
];

/** Access answers who can do something, and what somebody can do: now, at any moment that is known, and what is different between two. */
export default function Access() {
  const { params, to } = useLinks();
  const { mode, at, since } = useAsking();
  const asked = ['verb', 'resource', 'namespace', 'name', 'path', 'subject', 'group'].map((k) => params.get(k)).join('\n');
  return (
    <Page title="Access" lead="Who can do something, and what can somebody do? At any moment that is known.">
      <Card title="Ask">
        <div className={css.forms} key={asked}><WhoForm /><CanForm /></div>
        <Moments />
      </Card>
      {mode === 'who' && <Card title="Who can" note={<Asked />} flush><Holders /></Card>}
      {mode === 'can' && since && <Card title="What changed for it" note="between the two moments" flush><Difference one /></Card>}
      {mode === 'can' && <Card title="What it can do" note={<Name most={160}>{params.get('subject') ?? params.get('group')}</Name>} flush><Rights /></Card>}
      {mode === 'none' && since && <Card title="What changed" note="which accesses became possible and impossible" flush><Difference /></Card>}
      {mode === 'none' && (
        <Card title="Questions to begin with" note="who can …">
          <ul className={css.questions}>{QUESTIONS.map(([text, asks]) => <li key={text}><a className="button" data-row href={to('/access', { ...asks, at, since })}>{text}</a></li>)}</ul>
        </Card>
      )}
    </Page>
  );
}

/** Asked says the question again, where the answer is. */
function Asked() {
  const { params } = useLinks();
  const get = (k: string) => params.get(k);
  return (
    <>
      <Name most={80}>{get('verb')}</Name> <Name most={200}>{get('path') ?? get('resource')}</Name>
      {get('name') && <> named <Name most={120}>{get('name')}</Name></>}
      {get('path') ? null : get('namespace') ? <> in <Name most={120}>{get('namespace')}</Name></> : ' in any namespace'}
    </>
  );
}
