// One finding, as the drawer shows it: what was found, of whom, and the requests that show it.
import {h, name, names, time, plural} from '../dom.js';
import {ask} from '../api.js';
import {link, lead} from '../router.js';
import {who, subjectOf} from '../links.js';
import {severity, sentence} from '../words.js';

// found are the parameters that open a finding. The API lists findings by time, so the
// address has the finding's beside its ID.
export function found(f) { return {finding: f.id, since: f.first}; }

// findingOf looks up a finding, and the rule that made it. Of those under way at its begin the
// list has the latest begun first: it is among them.
export async function findingOf(id, cluster, signal, params) {
  const since = params.get('since');
  const [answer, {rules}] = await Promise.all([ask('findings', {cluster: cluster.name, from: since, at: since, limit: 500}, signal), ask('rules', {}, signal)]);
  const hit = answer.findings.find(f => f.id === id);
  return hit ? {...hit, about: rules.find(r => r.id === hit.rule)} : null;
}

export function finding(f, id, cluster) {
  if (!f) return h('div', {}, h('h2', {}, 'Not found'), h('p', {}, 'No stored finding of this cluster has the ID ', name(id), '.'));
  const at = {range: null, from: f.first, to: new Date(new Date(f.last).getTime() + 1).toISOString()};
  return h('section', {class: 'why'},
    h('h2', {}, f.title || f.rule),
    h('p', {}, severity(f.severity), ' ', h('a', {class: 'mono', href: lead('findings', {rule: f.rule}), 'data-tip': 'All findings of this rule'}, f.rule)),
    f.about?.description && h('p', {class: 'muted'}, sentence(f.about.description.replace(/\.\s*$/, ''))),
    f.text && h('p', {}, name(f.text, 1000)),
    h('dl', {},
      fact('Subject', who(f.subject, 1000)),
      fact('Counted', plural(f.count, 'request')),
      fact('First', [time(f.first, true).slice(0, 10), ' ', time(f.first), ' UTC']),
      fact('Last', [time(f.last, true).slice(0, 10), ' ', time(f.last), ' UTC']),
      fact('MITRE ATT&CK', names(f.attack)),
      fact('Cluster', name(f.cluster || cluster.name)),
      fact('Finding', name(f.id))),
    h('p', {class: 'onward'}, f.subject && [
      h('a', {href: lead('', {...at, subject: f.subject})}, 'Its requests at that time'),
      h('a', {href: subjectOf(f.subject)}, 'All about this subject'),
      h('a', {href: lead('findings', {subject: f.subject})}, 'All findings about it')]),
    h('h3', {}, f.evidence?.length < f.count ? `The requests behind it: the first ${f.evidence.length} of ${f.count}` : 'The requests behind it'),
    f.evidence?.length ? h('ol', {class: 'evidence'}, f.evidence.map((e, i) => h('li', {},
      h('time', {}, time(e.time)), ' ', e.auditID ? h('a', {href: link({why: e.auditID, request: e.request}), 'data-k': 'e' + i}, name(e.text, 600)) : name(e.text, 600)))) :
      h('p', {class: 'muted'}, 'None is listed.'));
}

function fact(title, value) { return [h('dt', {}, title), h('dd', {}, value)]; }
