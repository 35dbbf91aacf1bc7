// Who can do something, and what somebody can do: now, or at any moment that is known.
import {h, swap, card, plural} from '../dom.js';
import {visit} from '../router.js';
import {part} from '../part.js';
import {whoCan} from '../links.js';
import {whoForm, canForm} from './forms.js';
import {holders, told as toldHolders} from './holders.js';
import {rights} from './rights.js';

const ASKED = {verb: null, resource: null, namespace: null, name: null, path: null, subject: null, group: null, at: null, via: null, all: null, rows: null};

// ASK are questions that are worth asking of every cluster.
const ASK = [
  ['read Secrets', {verb: 'list', resource: 'secrets', all: 'yes'}], ['run commands in pods', {verb: 'create', resource: 'pods/exec', all: 'yes'}],
  ['do everything', {verb: '*', resource: '*.*', all: 'yes'}], ['bind themselves to any role', {verb: 'create', resource: 'clusterrolebindings.rbac.authorization.k8s.io'}],
  ['act as anybody', {verb: 'impersonate', resource: 'users'}], ['create tokens of service accounts', {verb: 'create', resource: 'serviceaccounts/token', all: 'yes'}],
  ['change admission webhooks', {verb: 'update', resource: 'validatingwebhookconfigurations.admissionregistration.k8s.io'}], ['read the metrics', {verb: 'get', path: '/metrics'}],
];

export default {
  title: 'Access',
  scoped: true,
  ranged: false, // it is about moments
  mount(root) {
    const question = card('w6', 'Who can …?', 'everybody to whom a grant allows it, with the grants');
    const person = card('w6', 'What can … do?', 'every rule that applies to a subject');
    const answer = card('', 'Answer');
    const told = h('p', {class: 'unseen', role: 'status'}); // for who does not see the answer come
    const say = words => ({onAnswer: a => { told.textContent = words(a); }});
    root.append(h('h1', {class: 'page'}, 'Access'), question.el, person.el, told, answer.el);
    answer.el.id = 'answer';
    const bodies = {who: h('div', {class: 'body'}), can: h('div', {class: 'body'})};
    const parts = {who: part(bodies.who, 'who-can', holders, say(toldHolders)), can: part(bodies.can, 'can', rights, say(a => a ? `${plural(a.scopes?.reduce((n, s) => n + s.rules.length, 0), 'rule')} apply.` : ''))};

    return {
      update(params, cluster, background) {
        const get = k => params.get(k);
        const mode = get('verb') ? 'who' : get('subject') || get('group') ? 'can' : '';
        if (!background) {
          const go = changes => visit({...ASKED, ...changes, why: null, request: null});
          swap(question.body, whoForm(params, cluster, go));
          swap(person.body, canForm(params, cluster, go));
          if (!mode) swap(answer.body, examples());
          else if (answer.body.firstChild !== bodies[mode]) answer.body.replaceChildren(bodies[mode]);
          answer.el.querySelector('h2').textContent = mode === 'who' ? 'Who can do it' : mode === 'can' ? 'What it can do' : 'Questions to begin with';
        }
        const where = {cluster: cluster.name};
        for (const k of mode === 'who' ? ['verb', 'resource', 'namespace', 'name', 'path', 'at'] : ['subject', 'group', 'at']) where[k] = get(k);
        if (mode === 'who' && get('all') === 'yes') where.allNamespaces = 'true';
        if (mode) parts[mode].update(where, background, params);
      },
      unmount() { parts.who.stop(); parts.can.stop(); },
    };
  },
};

function examples() {
  return [h('p', {class: 'empty'}, 'Ask above, or begin with one of these. Who can …'),
    h('p', {class: 'asks'}, ASK.map(([text, q], i) => h('a', {class: 'button', href: whoCan(q), 'data-k': 'ask' + i}, text)))];
}
