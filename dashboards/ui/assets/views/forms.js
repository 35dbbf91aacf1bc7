// The forms of the access page. What is typed goes into the address, and from there to the API.
import {h, time} from '../dom.js';
import {here} from '../router.js';

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'bind', 'escalate', 'impersonate', 'approve', 'sign', 'use', '*'];
const RESOURCES = ['secrets', 'pods', 'pods/exec', 'pods/log', 'configmaps', 'serviceaccounts/token', 'deployments.apps', 'roles.rbac.authorization.k8s.io', 'rolebindings.rbac.authorization.k8s.io', 'clusterroles.rbac.authorization.k8s.io', 'clusterrolebindings.rbac.authorization.k8s.io', 'nodes/proxy', 'certificatesigningrequests.certificates.k8s.io/approval'];

// whoForm asks who can do something; go takes the parameters.
export function whoForm(params, cluster, go) {
  return form(params, cluster, go, 'Who can?', [
    ['verb', 'Verb', 'get', {list: VERBS, required: true, help: 'get, list, create …; * is the right to all verbs'}],
    ['resource', 'Resource', 'deployments.apps', {list: RESOURCES, help: 'With its group and subresource: pods/exec, deployments.apps/scale'}],
    ['namespace', 'Namespace', 'the whole cluster', {help: 'Empty: by grants for the whole cluster; tick the box to add those in each namespace'}],
    ['name', 'Name', 'any', {help: 'Of one object. Empty: who can for any name'}],
    ['path', 'or URL path', '/healthz', {help: 'Of something that is not a resource; then leave out resource, namespace and name'}],
    ['all', 'in any namespace', '', {box: true, help: 'Also those to whom grants in single namespaces allow it'}],
  ]);
}

// canForm asks what somebody can do.
export function canForm(params, cluster, go) {
  return form(params, cluster, go, 'What can it do?', [
    ['subject', 'User', 'system:serviceaccount:default:builder', {wide: true, help: 'As audit logs have it; a service account is system:serviceaccount:NAMESPACE:NAME, a group alone group:NAME'}],
    ['group', 'Groups', 'those it was seen with', {wide: true, help: 'Separated by commas. Empty: those of its latest requests'}],
  ]);
}

function form(params, cluster, go, ask, fields) {
  const inputs = {};
  const field = ([key, label, hint, {list, required, wide, help, box}]) => {
    const id = 'ask-' + key;
    if (box) {
      const tick = inputs[key] = h('input', {type: 'checkbox', id, 'data-k': id, 'data-tip': help, value: 'yes'});
      tick.checked = params.get(key) === 'yes';
      return h('label', {class: 'box'}, tick, ' ', label);
    }
    const input = inputs[key] = h('input', {id, 'data-k': id, placeholder: hint, required, autocomplete: 'off', spellcheck: 'false', list: list && id + '-list', 'data-tip': help});
    input.value = params.get(key) ?? ''; // as a property it is taken as it is
    return h('label', {class: wide && 'wide'}, h('span', {}, label), input, list && h('datalist', {id: id + '-list'}, list.map(v => h('option', {value: v}))));
  };
  const when = inputs.at = h('input', {'data-k': 'at-' + ask, placeholder: 'the newest known', autocomplete: 'off', spellcheck: 'false', 'data-tip': 'A time in UTC, such as 2026-11-20 11:40:00. Empty: the newest policy known'});
  when.value = params.get('at') ?? '';
  const set = (text, value, tip) => h('button', {type: 'button', class: 'plainly', 'data-k': ask + text, 'data-tip': tip, onclick: () => { when.value = value; when.focus(); }}, text);
  return h('form', {class: 'ask', onsubmit: e => {
    e.preventDefault();
    const to = Object.fromEntries(Object.entries(inputs).map(([k, el]) => [k, el.value.trim() === '' || el.type === 'checkbox' && !el.checked ? null : k === 'at' ? moment(el.value) : el.value]));
    if (Object.entries(to).every(([k, v]) => k === 'at' || k === 'all' || v === null)) return Object.values(inputs)[0].focus();
    go(to);
  }},
    fields.map(field),
    h('div', {class: 'wide when'}, h('label', {}, h('span', {}, 'At (UTC)'), when),
      set('newest', '', 'The newest policy known'), set('end of the log', new Date(cluster.last).toISOString(), time(cluster.last, true) + ' UTC'), set('its beginning', new Date(cluster.first).toISOString(), time(cluster.first, true) + ' UTC')),
    h('button', {class: 'primary', 'data-k': ask}, ask));
}

// moment completes a time that was typed without its zone: times are UTC.
function moment(text) {
  const t = text.trim().replace(/^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d(?:\.\d+)?)?( ?UTC|Z)?$/i, (_, day, hm, s) => `${day}T${hm}${s ?? ':00'}Z`);
  return /^\d{4}-\d\d-\d\d$/.test(t) ? t + 'T00:00:00Z' : t; // what is not a time is for the server to say
}

// asOf words the moment an answer is about.
export function asOf(at) {
  const chosen = here().params.get('at');
  return h('span', {class: 'asof'}, chosen ? 'As it stood at ' : 'By the newest policy known', chosen ? [h('time', {}, time(at || chosen, true)), ' UTC'] : at && [', at ', h('time', {}, time(at, true)), ' UTC']);
}
