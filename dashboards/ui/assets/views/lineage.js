// The life of a credential, or of all those of a subject: the request that issued it, and every
// place it was used from.
import {h, card, table, name, names, count, time, plural} from '../dom.js';
import {link} from '../router.js';
import {who} from '../links.js';
import {rangeOf} from '../range.js';
import {part} from '../part.js';
import {empty} from './panels.js';
import {fact, issue, lineageOf} from './trial.js';

export default {
  title: 'Credentials',
  titled: params => params.get('credential') || params.get('subject'),
  scoped: true,
  page: 'subjects', // where it stands in the navigation
  mount(root) {
    const found = card('', 'Credentials', 'from the request that issued each to every use');
    root.append(h('h1', {class: 'page'}, 'Credentials'), found.el);
    const of = part(found.body, 'lineage', answer => answer ? lives(answer) : empty('The address names neither a credential nor a subject.'));
    return {
      update(params, cluster, background) {
        const credential = params.get('credential'), subject = params.get('subject'), range = rangeOf(cluster, params);
        const chosen = params.get('range') || params.get('from') ? {from: range.from.toISOString(), to: range.to.toISOString()} : {};
        of.update(credential || subject ? {cluster: cluster.name, ...(credential ? {credential} : {subject}), ...chosen} : null, background);
      },
      unmount() { of.stop(); },
    };
  },
};

function lives(answer) {
  return [answer.subject && h('p', {}, 'Of ', who(answer.subject, 400), ':'), answer.credentials.map((c, i) => life(c, i)),
    answer.truncated && h('p', {class: 'muted'}, 'There are more credentials than shown here.')];
}

function life(c, i) {
  return h('section', {class: 'life'},
    h('h3', {}, c.credential ? h('a', {class: 'who', href: lineageOf(c.credential), 'data-k': 'life' + i}, name(c.credential, 400)) : 'Not in the events'),
    h('dl', {},
      fact('Issued', c.issue ? [issue(c.issue), c.issue.auditID && [' ', h('a', {href: link({why: c.issue.auditID, request: null}), 'data-k': 'issue' + i}, 'the request')]] : h('span', {class: 'muted'}, c.credential ? 'no recorded request shows it' : '–')),
      fact('Used as', c.users?.length ? c.users.map((u, j) => [j > 0 && ', ', who(u, 400, `u${i}.${j}`)]) : '–'),
      c.explained?.length > 0 && fact('Taken by', names(c.explained, 12, s => name(s, 200))),
      fact('Used', c.requests ? [plural(c.requests, 'request'), c.first && [', ', h('time', {}, time(c.first, true)), ' to ', h('time', {}, time(c.last, true))], c.forbidden > 0 && `, ${count(c.forbidden)} refused`] : 'never'),
      c.contradictions?.length > 0 && fact('Contradictions', c.contradictions.map(f => h('div', {}, h('b', {class: 'mono'}, name(f.name, 100)), ': ', name(f.evidence, 600))))),
    c.uses?.length > 0 && table(['From', 'Pod', 'Node', 'User agent', '#Requests', 'First (UTC)', 'Last (UTC)'], c.uses.map(u => ({cells: [
      u.from ? name(u.from, 80) : nil(), u.pod ? name(u.pod, 160) : nil(), u.node ? name(u.node, 160) : nil(), u.userAgent ? name(u.userAgent, 160) : nil(), count(u.requests), h('time', {}, time(u.first, true)), h('time', {}, time(u.last, true))]})), 'rows lives'),
    c.more && h('p', {class: 'muted'}, 'It was used from more places than shown here.'));
}

function nil() { return h('span', {class: 'muted nil'}, '–'); }
