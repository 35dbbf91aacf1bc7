// What would have allowed a refused request: asked of the server when the reader unfolds it.
import {h, swap, name, names, prose} from '../dom.js';
import {ask} from '../api.js';
import {decision} from '../words.js';
import {arrow, node} from './grants.js';
import {chain} from './trial.js';
import {failed} from './panels.js';

// denial is the fold of a request that was refused; null for others.
export function denial(r) {
  const v = r.verdict ?? {}, code = r.event?.responseStatus?.code;
  if (v.recorded !== 'forbid' && v.replayed !== 'forbid' && code !== 401 && code !== 403) return null;
  const body = h('div', {});
  const load = async () => {
    swap(body, h('div', {class: 'loading'}));
    try {
      const answer = await ask('explain-deny', {auditID: r.event.auditID, cluster: r.cluster});
      const one = answer.requests.find(x => x.request === r.request);
      swap(body, one ? explained(one) : h('p', {class: 'muted'}, 'Too many requests have this audit ID: this one is not explained.'));
    } catch (err) {
      swap(body, failed(err, load));
    }
  };
  let asked = false;
  return h('details', {class: 'denial', 'data-k': 'denial' + r.request, ontoggle: e => { if (e.target.open && !asked) { asked = true; load(); } }},
    h('summary', {}, 'Who refused it, and what would have allowed it'), body);
}

function explained(d) {
  return h('div', {}, h('p', {}, h('b', {}, 'Refused: '), prose(d.text, 1500)),
    d.checks.map((c, i) => [h('h3', {}, 'The check that refused it'), h('p', {}, h('span', {class: 'mono'}, name(c.check, 80)), ': may ', name(c.user, 200), ' ', name(c.asked, 600), '? ', decision(c.replayed)), plain(c.missing), nearest(c.nearest, 'k' + i)]),
    chain(d.chain.map(s => ({...s, reason: [s.text, ...(s.almost ?? [])].join('; ')}))),
    d.missing.length > 0 && [h('h3', {}, 'Not known'), plain(d.missing)],
    d.chain.map((s, i) => d.checks.length || s.answer === 'allow' ? null : nearest(s.nearest, 'n' + i)));
}

function nearest(n) {
  if (!n) return null;
  return [
    n.almost.length > 0 && [h('h3', {}, 'Nearest misses: rules that lack one thing'), h('ol', {class: 'grants'}, n.almost.map(g => h('li', {}, node('subject', g.subject), arrow(), node('bound by', g.binding), arrow(), node(`rule ${g.rule} of`, g.role), h('b', {}, 'but for the ', name(g.lacks, 40)))))],
    n.roles.length > 0 && [h('h3', {}, 'Roles that allow it, the narrowest first'), h('p', {}, names(n.roles.map(o => o.role), 10, s => name(s, 200)))],
    n.bindings.length > 0 && [h('h3', {}, 'Bindings that grant it to others'), h('p', {}, names(n.bindings.map(o => `${o.binding} → ${o.role}`), 10, s => name(s, 300)))],
    h('h3', {}, 'The narrowest rule that allows it'), h('pre', {}, rule(n.rule))];
}

// rule writes a rule as YAML's flow form, which is JSON.
function rule(r) {
  return ['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs', 'verbs'].filter(k => r?.[k]?.length).flatMap((k, i) => [i ? h('br') : '', `${k}: ${JSON.stringify(r[k])}`]);
}

function plain(items) { return items?.length ? h('ul', {class: 'plain'}, items.map(i => h('li', {}, prose(i)))) : null; }
