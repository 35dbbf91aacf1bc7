// The answer to "why was this decided": one section a request, for an audit ID is chosen by
// the client and may name several.
import {h, table, name, block, time, plural} from '../dom.js';
import {link, lead} from '../router.js';
import {asked, subjectOf, whoCan} from '../links.js';
import {grants as paths} from './grants.js';
import {chip, decision, explain, explainClass, sentence} from '../words.js';
import {identity, contradictions, chain, impersonation, implied, review, fact} from './trial.js';
import {denial} from './denial.js';

// why renders the requests found under an audit ID; the one that was chosen comes first.
export function why(answer, auditID, chosen) {
  const list = answer.requests;
  if (!list.length) {
    return h('div', {}, h('h2', {}, 'Not found'), h('p', {}, 'No stored request carries the audit ID ', name(auditID), '.'));
  }
  const first = Math.max(0, list.findIndex(r => r.request === chosen));
  const others = list.filter((_, i) => i !== first);
  return h('div', {},
    others.length > 0 && h('p', {class: 'next warn'}, h('b', {}, `${plural(list.length, 'request')} carry this audit ID. `), 'Clients choose the ID and may reuse it; the others are below.'),
    request(list[first]),
    others.map(r => h('details', {class: 'other'}, h('summary', {}, time(r.event?.requestReceivedTimestamp, true), ' ', name(`${r.event?.verb ?? ''} ${r.event?.requestURI ?? ''}`, 120)), request(r))),
    answer.truncated && h('p', {class: 'muted'}, 'There are more than shown here.'));
}

// about leads on to a user of the request; which says who that is where there are two.
function about(user, which) {
  return user?.username && [
    h('a', {href: subjectOf(user.username)}, 'All about ', which ? [name(user.username, 80), ', ', which] : 'this subject'),
    h('a', {href: lead('findings', {subject: user.username})}, 'Findings about ', which ? name(user.username, 80) : 'it')];
}

function request(r) {
  const v = r.verdict ?? {}, e = r.event ?? {};
  const user = e.impersonatedUser ?? e.user ?? {};
  const what = e.verb && e.requestURI ? {...asked(e.verb, e.requestURI), at: e.requestReceivedTimestamp} : null;
  return h('section', {class: 'why'},
    h('h2', {}, headline(v, user)),
    h('p', {}, chip(v.outcome), ' ', v.class && h('span', {class: 'mono muted', 'data-tip': explainClass(v.class)}, v.class), ' ',
      h('a', {class: 'meaning', href: link({why: null, request: null}, 'verdicts')}, 'What does this mean?')),
    h('p', {class: 'muted'}, v.outcome && v.outcome !== 'match' ? [sentence(v.cause), ' ', explainClass(v.class)] : explain(v.outcome)),
    h('div', {class: 'sides'},
      h('div', {}, h('h3', {}, 'The apiserver recorded'), decision(v.recorded), v.recordedReason && h('p', {}, name(v.recordedReason, 1000))),
      h('div', {}, h('h3', {}, 'The replay decides'), decision(v.replayed), h('p', {}, decided(v)))),
    grants(v.grants?.length === 1 ? 'The one grant that makes it possible' : `${v.grants?.length} grants, each of which makes it possible`, v.grants, what),
    h('p', {class: 'onward'}, what && h('a', {href: whoCan(what)}, 'Who else could do this then?'), about(e.user, e.impersonatedUser && 'who made it'), about(e.impersonatedUser, 'whom they acted as')),
    denial(r),
    chain(r.chain),
    items('Roles that bindings refer to and that do not exist', v.errors),
    items('What is needed to decide', v.missing),
    impersonation(v.impersonation),
    implied(v.implied),
    review(v.review),
    contradictions(v),
    h('h3', {}, 'The request'),
    h('dl', {},
      fact('Asked', name(`${e.verb ?? ''} ${e.requestURI ?? ''}`, 4000)),
      fact('User', e.user?.username ? h('a', {href: subjectOf(e.user.username)}, name(e.user.username, 4000)) : '(none)'),
      e.impersonatedUser && fact('Acting as', h('a', {href: subjectOf(e.impersonatedUser.username)}, name(e.impersonatedUser.username, 4000))),
      fact('Groups', list(user.groups)),
      identity(r),
      fact('From', [list(e.sourceIPs), e.userAgent && h('div', {class: 'muted'}, name(e.userAgent, 1000))]),
      fact('Received', [time(e.requestReceivedTimestamp, true).slice(0, 10), ' ', time(e.requestReceivedTimestamp), ' UTC']),
      fact('Answered', [e.responseStatus?.code ? `${e.responseStatus.code} ` : '–', e.responseStatus?.message && name(e.responseStatus.message, 2000)]),
      v.admission?.answers?.length && fact('Admission', v.admission.answers.map(a =>
        h('div', {}, name(a.plugin), a.name && [' ', name(a.name)], `: ${a.outcome}`, a.reason && h('span', {class: 'muted'}, ' ', name(a.reason, 400))))),
      fact('Cluster', [name(r.cluster), r.apiserver && [', apiserver ', name(r.apiserver)], h('span', {class: 'muted'}, ` (by ${r.source})`)]),
      r.twin && fact('Also recorded by', name(r.twin, 400)),
      fact('Audit ID', name(e.auditID, 1000))),
    h('h3', {}, 'Stages'),
    table(['Stage', 'Time (UTC)', '#Status'], (r.stages ?? []).map(s => ({cells: [name(s.stage), h('time', {}, time(s.time)), s.code || '–']}))),
    h('details', {}, h('summary', {}, 'The event as stored, secrets redacted'), h('pre', {}, block(JSON.stringify(e, null, 2)))),
    v.engine !== undefined && h('p', {class: 'muted small'}, 'Decided by engine ', name(v.engine), ', configuration ', name(v.config), '.'));
}

function headline(v, user) {
  const who = user.username ? name(user.username, 200) : 'a caller without a name';
  switch (v.replayed) {
    case 'allow': return v.grants?.length ? [who, ` may do this: ${plural(v.grants.length, 'grant allows', 'grants allow')} it`] : [who, ' may do this without any grant'];
    case 'forbid': return ['Nothing allows ', who, ' to do this'];
  }
  return ['No decision for ', who];
}

function decided(v) {
  switch (v.authorizer) {
    case 'masters': return 'The group system:masters may do everything; no other authorizer is asked.';
    case 'node': return 'The node authorizer allows this to kubelets.';
    case 'rbac': return 'By RBAC, through the grants below.';
  }
  if (v.replayed === 'allow' && v.authorizer) return ['By the authorizer ', name(v.authorizer, 200), '.'];
  return v.replayed === 'forbid' ? 'No authorizer allows it.' : 'It cannot be decided.';
}

// grants draws every path that makes what was asked possible.
function grants(title, list, what) {
  if (!list?.length) return null;
  return [title && h('h3', {}, title), paths(list, what, 'w')];
}

function items(title, list) {
  if (!list?.length) return null;
  return [title && h('h3', {}, title), h('ul', {class: 'plain'}, list.map(i => h('li', {}, name(i, 1000))))];
}

// list shows names, each apart from the others.
function list(names) {
  return names?.length ? names.flatMap((n, i) => i ? [', ', name(n, 1000)] : [name(n, 1000)]) : '(none)';
}
