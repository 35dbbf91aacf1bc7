// The parts of the answer to "why" beside the decision itself: who it was and by which
// credential, what each authorizer answered, what was checked behind them, and what a review
// was told.
import {h, table, name, names, prose, time} from '../dom.js';
import {lead} from '../router.js';
import {subjectOf} from '../links.js';
import {grants as paths} from './grants.js';
import {chip, decision} from '../words.js';

// identity are the facts about who it was: pairs for a definition list.
export function identity(r) {
  const v = r.verdict ?? {};
  return [
    v.explained?.length > 0 && fact('Explained by', names(v.explained, 12, s => name(s, 200))),
    r.authenticators?.length > 0 && fact('', h('details', {'data-k': 'authn' + r.request}, h('summary', {}, 'What each authenticator says'), h('ul', {class: 'plain'}, r.authenticators.map(a => h('li', {}, name(a.authenticator, 100), ': ', a.certain ? 'produces this identity' : a.possible ? ['can have produced it', a.why && [': ', prose(a.why)]] : ['cannot: ', prose(a.why)]))))),
    v.credential && fact('Credential', [h('a', {href: lineageOf(v.credential), 'data-k': 'lineage', 'data-tip': 'From its issue to every use'}, name(v.credential, 400)), r.issue && h('div', {class: 'muted'}, issue(r.issue))])];
}

// lineageOf is the address of a credential's life.
export function lineageOf(credential) { return lead('lineage', {credential, range: null, from: null, to: null}); }

// issue words how a credential came to be.
export function issue(is) {
  const of = [['for service account', is.serviceAccount], ['pod', is.pod], ['node', is.node], ['Secret', is.secret], ['signing request', is.csr], ['signer', is.signer], ['name', is.commonName]]
    .filter(([, value]) => value).map(([what, value], i) => [i ? ', ' : ' ', what, ' ', name(value, 200)]);
  return ['issued ', h('time', {}, time(is.at, true)), ' by ', is.by ? h('a', {class: 'who', href: subjectOf(is.by)}, name(is.by, 200)) : 'an unknown user', is.from && [' from ', name(is.from, 80)], of,
    is.organizations?.length > 0 && [', groups ', names(is.organizations, 12, s => name(s, 200))], is.expires && [', valid until ', h('time', {}, time(is.expires, true))]];
}

// contradictions lists what does not fit in the recorded identity, with the evidence.
export function contradictions(v) {
  if (!v.identity?.length) return null;
  return [h('h3', {}, 'Contradictions in the event, and what is worth knowing about its identity'), h('ul', {class: 'plain contradictions'}, v.identity.map((f, i) => h('li', {},
    h('b', {class: 'mono'}, name(f, 100)), v.evidence?.[i] && [': ', prose(v.evidence[i])])))];
}

// chain draws the authorizers in the order they are asked, each with its answer and reason.
export function chain(steps) {
  if (!steps?.length) return null;
  return [h('h3', {}, 'The authorizers, in order'), table(['Authorizer', 'Answer', 'Reason, or what is missing'], steps.map(s => (
    {cells: [name(s.authorizer, 200), h('span', {class: s.answer === 'not asked' ? 'muted' : s.answer === 'allow' ? 'decision d-allow' : s.answer === 'deny' ? 'decision d-forbid' : ''}, name(s.answer, 60)), s.reason ? prose(s.reason) : h('span', {class: 'muted nil'}, '–')]})), 'rows chain')];
}

// impersonation says whether the requestor might act as the user it named.
export function impersonation(im) {
  if (!im) return null;
  return [h('h3', {}, 'May the requestor act as this user?'),
    h('p', {}, decision(im.replayed), im.mode && h('span', {class: 'muted'}, ' ', name(im.mode, 200)), im.recorded === 'forbid' && h('span', {class: 'muted'}, ' (the apiserver refused it)')),
    im.cause && h('p', {}, prose(im.cause)), list(im.missing), im.grants?.length > 0 && paths(im.grants, null, 'im')];
}

// implied lists the checks behind the authorization filter.
export function implied(checks) {
  if (!checks?.length) return null;
  return [h('h3', {}, 'Checked behind the authorizers'), h('ol', {class: 'checks'}, checks.map((c, i) => h('li', {},
    h('span', {class: 'mono'}, name(c.check, 80)), c.asked && [': ', name(c.asked, 600)], ' ',
    c.covered ? h('span', {class: 'decision d-allow'}, 'not needed: the subject holds what it grants') : decision(c.replayed),
    c.recorded && c.recorded !== 'none' && c.recorded !== c.replayed && h('b', {class: 'bad'}, ` the apiserver's response shows: ${c.recorded}`),
    c.perhaps && h('div', {class: 'muted'}, 'Perhaps: ', prose(c.perhaps)),
    list(c.missing), c.grants?.length > 0 && paths(c.grants, null, 'c' + i + '.'))))];
}

// review compares the answer of a review with the replica's.
export function review(r) {
  if (!r) return null;
  return [h('h3', {}, 'What this review was answered'),
    h('p', {}, name(r.kind, 80), ' of ', r.user ? h('a', {href: subjectOf(r.user)}, name(r.user, 400)) : '(nobody)', r.asked && [': ', name(r.asked, 600)]),
    h('p', {}, chip(r.outcome), ' recorded ', decision(r.recorded), ', replayed ', decision(r.replayed)),
    r.reason && h('p', {class: 'muted'}, name(r.reason, 1000)), r.cause && h('p', {}, prose(r.cause))];
}

function list(items) { return items?.length ? h('ul', {class: 'plain'}, items.map(i => h('li', {}, prose(i)))) : null; }

export function fact(title, value) { return [h('dt', {}, title), h('dd', {}, value)]; }
