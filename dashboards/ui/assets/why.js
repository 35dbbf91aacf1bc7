// The answer to "why was this decided": one section a request, for an audit ID is chosen by
// the client and may name several.
import {h, table, time} from './dom.js';

// why renders the requests found under an audit ID.
export function why(requests, auditID) {
  if (!requests.length) {
    return h('div', {}, h('h2', {}, 'Not found'), h('p', {}, `No stored request carries the audit ID ${auditID}.`));
  }
  return h('div', {},
    requests.length > 1 && h('p', {class: 'next'}, `${requests.length} different requests carry this audit ID: the client chooses it, so it may be reused.`),
    requests.map(request));
}

function request(r) {
  const v = r.verdict ?? {};
  const e = r.event ?? {};
  const user = e.impersonatedUser ?? e.user ?? {};
  const refs = (title, grants) => grants?.length ? [h('h3', {}, title), table(['Subject', 'Binding', 'Role'], grants.map(g =>
    [h('span', {class: 'mono'}, g.subject), h('span', {class: 'mono'}, g.binding), h('span', {class: 'mono'}, g.role)]))] : null;
  const list = (title, items) => items?.length ? [h('h3', {}, title), h('ul', {class: 'plain'}, items.map(i => h('li', {class: 'mono'}, i)))] : null;
  return h('section', {},
    h('h2', {}, sentence(v, user)),
    h('span', {class: 'chip bg-' + (v.verdict ?? '')}, (v.verdict ?? 'no verdict').replace('_', ' ')), ' ', h('span', {class: 'mono muted'}, v.class ?? ''),
    v.cause && h('p', {}, v.cause),
    h('dl', {},
      dt('Request', h('span', {class: 'mono'}, `${e.verb ?? ''} ${e.requestURI ?? ''}`)),
      dt('Cluster', r.cluster),
      dt('Received', time(e.requestReceivedTimestamp, true) + ' UTC'),
      dt('User', h('span', {class: 'mono'}, e.user?.username || '(none)')),
      e.impersonatedUser && dt('Acting as', h('span', {class: 'mono'}, e.impersonatedUser.username)),
      dt('Groups', h('span', {class: 'mono'}, (user.groups ?? []).join(', ') || '(none)')),
      dt('From', h('span', {class: 'mono'}, (e.sourceIPs ?? []).join(', '))),
      dt('Recorded', `${v.recorded ?? 'none'}${v.recordedReason ? ': ' + v.recordedReason : ''}`),
      dt('Replayed', `${v.replayed ?? 'none'}${v.authorizer ? ' by ' + v.authorizer : ''}`),
      dt('Response', `${e.responseStatus?.code ?? '–'} ${e.responseStatus?.message ?? ''}`),
      v.admission?.plugin && dt('Refused by admission', v.admission.plugin),
      dt('Engine', `${v.engine ?? ''} · configuration ${v.config ?? ''}`)),
    refs('Every grant that makes it possible', v.grants),
    list('Roles that were missing', v.errors),
    list('What is needed to decide', v.missing),
    list('What does not fit in the identity', v.identity),
    v.impersonation && [h('h3', {}, 'The right to act as this user'), h('p', {}, `${v.impersonation.replayed} (${v.impersonation.mode})`), refs('', v.impersonation.grants)],
    r.stages?.length ? [h('h3', {}, 'Stages'), table(['Stage', 'Time (UTC)', '#Code'], r.stages.map(s => [s.stage, time(s.time), s.code || '–']))] : null,
    h('h3', {}, 'Event as stored (secrets redacted)'),
    h('pre', {}, JSON.stringify(e, null, 2)));
}

function sentence(v, user) {
  const who = user.username || 'an unauthenticated caller';
  switch (v.replayed) {
    case 'allow': return v.grants?.length ? `${who} may do this: ${v.grants.length} ${v.grants.length === 1 ? 'grant allows' : 'grants allow'} it` : `${who} may do this without a grant (${v.authorizer || 'authorizer'})`;
    case 'forbid': return `Nothing allows ${who} to do this`;
  }
  return `No decision for ${who}`;
}

function dt(name, value) { return [h('dt', {}, name), h('dd', {}, value)]; }
