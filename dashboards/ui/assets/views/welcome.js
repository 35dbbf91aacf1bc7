// What a page shows that has no events to show: what to do.
import {h, lines, count, time} from '../dom.js';
import {connection} from './connection.js';

// welcome is for a store without any events.
export function welcome() {
  return {refresh() {}, nodes: [h('section', {class: 'card welcome'}, h('h2', {}, 'No events yet'),
    h('p', {}, 'Retrial decides every request of a Kubernetes audit log a second time and compares the decisions. It needs a log: let an apiserver send one, or import a recorded one.'),
    h('h3', {}, 'A live cluster'), h('pre', {}, 'retrial connect NAME'),
    h('p', {class: 'muted'}, 'makes a certificate, files and flags for the apiserver, and waits until its events arrive.'),
    h('h3', {}, 'A recorded log'), h('pre', {}, lines('kubectl get roles,rolebindings,clusterroles,clusterrolebindings,namespaces,serviceaccounts -A -o json > state.json', 'retrial import --cluster NAME --state state.json audit.log')),
    h('p', {class: 'muted'}, 'This page shows them as soon as the first batch is stored.'))]};
}

// unknown is for a cluster without events: how far its connection is, and the others. refresh
// looks again.
export function unknown(name, clusters) {
  const state = connection('');
  const refresh = () => state.update({cluster: name});
  refresh();
  return {refresh, nodes: [
    h('section', {class: 'card welcome'}, h('h2', {}, 'No such cluster'),
      h('p', {}, 'There are no events of a cluster named ', h('bdi', {class: 'mono'}, name), '.'),
      clusters.length > 0 && [h('p', {}, 'There are events of:'),
        h('ul', {class: 'plain'}, clusters.map(c => h('li', {}, h('a', {href: '#/?' + new URLSearchParams({cluster: c.name})}, c.name), h('span', {class: 'muted'}, ` ${count(c.events)} events, until ${time(c.last, true)} UTC`))))]),
    state.el,
  ]};
}
