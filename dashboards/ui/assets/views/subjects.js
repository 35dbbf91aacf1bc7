// Every subject, ranked by what it was granted and never used.
import {h, card, table, fold, name, names, count, percent, plural} from '../dom.js';
import {link, visit} from '../router.js';
import {rangeOf} from '../range.js';
import {subjectOf} from '../links.js';
import {part} from '../part.js';
import {empty} from './panels.js';

const FEW = 100;

export default {
  title: 'Subjects',
  scoped: true,
  mount(root) {
    const form = h('form', {class: 'ask go'});
    const find = h('input', {id: 'find', 'data-k': 'find', type: 'search', placeholder: 'a user, exactly', autocomplete: 'off', spellcheck: 'false', 'aria-label': 'User'});
    form.append(h('label', {class: 'wide'}, h('span', {}, 'Open a subject'), find), h('button', {class: 'primary'}, 'Open'));
    form.addEventListener('submit', e => { e.preventDefault(); if (find.value) location.hash = subjectOf(find.value); });
    const {el, body} = card('', 'By excess', 'what its own bindings grant and it never used, weighed by danger; most first');
    root.append(h('h1', {class: 'page'}, 'Subjects'), form, el);
    let params = new URLSearchParams();
    const list = part(body, 'suggest', answer => ranking(answer, params));
    return {
      update(now, cluster, background) {
        params = now;
        const range = rangeOf(cluster, now);
        list.update({cluster: cluster.name, all: 'true', from: range.from.toISOString(), to: range.to.toISOString(), includeSystem: now.get('system') === 'yes' ? 'true' : null}, background);
      },
      unmount() { list.stop(); },
    };
  },
};

function ranking(answer, params) {
  const system = params.get('system') === 'yes', all = answer.suggestions ?? [];
  const toggle = h('div', {class: 'filters'}, h('button', {'aria-pressed': String(system), 'data-k': 'system', 'data-tip': 'Kubernetes’ own: system:*, service accounts of kube-* namespaces, members of system:masters', onclick: () => visit({system: system ? null : 'yes'})}, 'with Kubernetes’ own subjects'));
  if (!all.length) return [toggle, empty('RBAC decided no request in this range.')];
  const most = Math.max(1, ...all.map(s => s.excess.before));
  const list = params.get('rows') === 'all' ? all : all.slice(0, FEW);
  const held = all.filter(s => s.proof.holds).length, before = all.reduce((n, s) => n + s.excess.before, 0), after = all.reduce((n, s) => n + s.excess.after, 0);
  return [toggle,
    h('p', {}, h('b', {}, plural(all.length, 'subject')), `: excess ${count(before)}, ${count(after)} if every suggestion were applied. ${held === all.length ? 'Every proof holds' : `${count(held)} of ${count(all.length)} proofs hold`}${answer.plan?.holds ? ', and all suggestions together' : ''}.`),
    table(['Subject', '#Excess', '#After', '#By groups', '#Requests', '#Judged', 'Change', 'Proof'], list.map(s => {
      const href = subjectOf(s.subject);
      return {href, cells: [h('div', {class: 'share'}, h('a', {href, 'data-k': 'u' + s.subject}, name(s.subject, 120)), h('i', {class: 'over', style: `width:${100 * s.excess.before / most}%`})),
        count(s.excess.before), h('span', {class: s.excess.after ? '' : 'muted'}, count(s.excess.after)), count(s.excess.kept), count(s.window.requests), percent(s.window.judged, s.window.requests),
        h('span', {class: s.size.apply + s.size.remove ? '' : 'muted'}, s.size.apply + s.size.remove ? `${plural(s.size.apply, 'object')}, ${plural(s.size.remove, 'removal')}` : 'none'),
        h('span', {class: 'chip ' + (s.proof.holds ? 'is-match' : 'is-drift')}, s.proof.holds ? 'holds' : 'fails')]};
    }), 'rows ranking'),
    all.length > list.length && h('p', {}, h('a', {class: 'button', href: link({rows: 'all'}), 'data-k': 'all-rows'}, `Show all ${count(all.length)}`)),
    unseen(answer.unseen)];
}

// unseen are those that hold something and asked for nothing.
function unseen(list) {
  if (!list?.length) return null;
  return fold('unseen', [h('b', {}, `${plural(list.length, 'subject')} named by bindings made no request`), h('span', {class: 'muted'}, ': everything they hold is unused')], list.length < 20,
    table(['Subject', '#Excess', 'Bindings'], list.slice(0, 200).map(u => {
      const href = subjectOf(u.subject);
      return {href, cells: [h('a', {href, 'data-k': 'n' + u.subject}, name(u.subject, 120)), count(u.excess), names(u.bindings, 4)]};
    }), 'rows unseen-list'));
}
