// What does not agree, by likely cause: the requests that do not match, put together by what
// they have in common, with what probably lies behind and what to give to settle it.
import {h, card, table, name, prose, count, plural, span} from '../dom.js';
import {link} from '../router.js';
import {rangeOf} from '../range.js';
import {part} from '../part.js';
import {chip, sentence} from '../words.js';
import {empty} from './panels.js';

const FEW = 6; // groups that are shown at once

export function driftCard() {
  const {el, body} = card('', 'What does not match, by likely cause', 'drift, ambiguous and indeterminate requests, and what would settle them');
  const of = part(body, 'drift', answer => {
    const groups = answer.groups ?? [];
    if (!groups.length) {
      if (!answer.requests) return empty('Nothing can be said: there are no requests in this range.');
      if (!answer.judged) return empty(`Nothing can be said: none of the ${plural(answer.requests, 'request')} in this range could be compared.`);
      return empty(answer.judged === 1 ? 'Nothing: the one judged request in this range is a match.' : `Nothing: all ${plural(answer.judged, 'judged request')} in this range are matches.`);
    }
    const rest = groups.slice(FEW);
    return [list(groups.slice(0, FEW)), rest.length > 0 && h('details', {'data-k': 'more-drift'}, h('summary', {}, `${plural(rest.length, 'more group')}`), list(rest)),
      answer.truncated && h('p', {class: 'muted'}, 'There are more than fit into one answer: choose a shorter range.')];
  }, {follow: () => true});
  return {
    el,
    update(params, cluster, background) {
      const range = rangeOf(cluster, params);
      of.update({cluster: cluster.name, from: range.from.toISOString(), to: range.to.toISOString()}, background);
    },
    stop: of.stop,
  };
}

function list(groups) {
  return table(['Verdict', 'What', '#Requests', 'Probable cause, and what would settle it', 'Earliest'], groups.map(g => ({cells: [
    chip(g.outcome),
    [h('span', {class: 'mono', 'data-tip': sentence(g.text)}, name(g.class, 100)), g.about && h('div', {}, name(g.about, 300)), g.apiserver && h('div', {class: 'muted small'}, 'apiserver ', name(g.apiserver, 100)), h('div', {class: 'muted small'}, span(g.first, g.last))],
    [count(g.count), h('div', {class: 'muted small'}, plural(g.users, 'user'))],
    (g.likely ?? []).map(l => h('div', {class: 'likely'}, h('b', {}, name(l.kind, 60)), ': ', prose(l.why), h('div', {class: 'muted'}, 'Give: ', prose(l.give)))),
    (g.examples ?? []).map((x, i) => h('div', {}, h('a', {class: 'who', href: link({why: x.auditID, request: null}), 'data-k': `d${g.class}${g.about ?? ''}${g.apiserver ?? ''}${i}`, 'data-tip': x.cause}, name(`${x.user} ${x.verb} ${x.requestURI}`, 110))))]})), 'rows drift');
}
