// The first page: what happened on a cluster, how the replay's decisions compare with the
// recorded ones, and why each request was decided as it was.
import {h, swap, card, span} from '../dom.js';
import {ask, latest} from '../api.js';
import {visit, link} from '../router.js';
import {rangeOf} from '../range.js';
import {volume} from '../chart.js';
import * as panels from './panels.js';
import {eventList} from './events.js';
import {connection} from './connection.js';
import {newest as newestFindings} from './findings.js';
import {driftCard} from './drift.js';

const SERIES = {
  decision: [['allow', 'allowed'], ['forbid', 'forbidden'], ['none', 'no decision recorded']],
  verdict: [['match', 'match'], ['not_judged', 'not judged'], ['indeterminate', 'indeterminate'], ['ambiguous', 'ambiguous'], ['drift', 'drift']],
};

export default {
  title: '',
  scoped: true, // shows one cluster
  mount(root) {
    const intro = h('p', {class: 'intro'}, 'Every request of the audit log, decided a second time from the cluster’s own policy as it stood at that time, and compared with what the apiserver recorded. ',
      h('a', {onclick: e => { e.currentTarget.href = link({}, 'verdicts'); }, href: '#/verdicts'}, 'What the verdicts mean'));
    const tiles = h('div', {class: 'tiles'});
    const chart = card('w8', 'Requests over time'), coverage = card('w4', 'Verdict coverage', 'how much could be decided again');
    const decisions = card('', 'Decisions', 'the apiserver’s against the replay’s'), classes = card('', 'Drift and open questions, by class');
    const subjects = card('', 'Top subjects', 'who made most requests');
    const events = eventList(), found = newestFindings(), state = connection(''), drift = driftCard();
    root.append(h('h1', {class: 'unseen'}, 'Overview'), state.el, intro, tiles, chart.el, coverage.el, h('div', {class: 'column w6'}, classes.el, decisions.el), h('div', {class: 'column w6'}, found.el, subjects.el), drift.el, events.el);
    tiles.append(...panels.emptyTiles());

    const all = [chart, coverage, decisions, classes, subjects];
    const newest = latest();
    let shown = ''; // the question the panels answer
    let last; // the answer

    const draw = params => {
      const mode = params.get('chart') in SERIES ? params.get('chart') : 'decision';
      const toggle = h('div', {class: 'toggle', role: 'group', 'aria-label': 'Colours show'}, Object.keys(SERIES).map(m =>
        h('button', {'aria-pressed': String(m === mode), 'data-k': m, onclick: () => visit({chart: m === 'decision' ? null : m})}, 'by ' + m)));
      swap(chart.body, toggle, params.get('from') && h('a', {class: 'reset', href: link({from: null, to: null, before: null}), 'data-k': 'reset'}, 'Show the whole range again'),
        last.volume.length ? volume({buckets: last.volume, seconds: last.bucketSeconds, from: new Date(last.from), to: new Date(last.to), series: SERIES[mode],
          onPick: (a, b) => visit({from: a.toISOString(), to: b.toISOString(), range: null, before: null})}) : panels.empty('No requests in this range.'));
      swap(tiles, panels.tiles(last.totals, params));
      swap(coverage.body, panels.coverage(last));
      swap(decisions.body, panels.decisions(last));
      swap(classes.body, panels.classes(last));
      swap(subjects.body, panels.subjects(last));
    };

    // load asks for what the panels show when the question has changed or there is news.
    const load = async (params, cluster, background) => {
      const range = rangeOf(cluster, params);
      const where = {cluster: cluster.name, from: range.from.toISOString(), to: range.to.toISOString()};
      const question = JSON.stringify(where);
      if (question === shown && !background) { if (last) draw(params); return; }
      if (!background) for (const c of all) c.body.classList.add('stale');
      shown = question;
      try {
        const answer = await newest(signal => ask('overview', where, signal));
        if (!answer) return;
        last = answer;
        draw(params);
      } catch (err) {
        if (background && last) return; // the status tells; what is shown stays
        shown = '';
        swap(tiles, panels.emptyTiles());
        for (const c of all) swap(c.body, panels.failed(err, c === chart && (() => load(params, cluster, false))));
      }
      for (const c of all) c.body.classList.remove('stale');
    };

    return {
      update(params, cluster, background) {
        load(params, cluster, background);
        events.update(params, cluster, background);
        found.update(params, cluster, background);
        drift.update(params, cluster, background);
        state.update({cluster: cluster.name});
      },
      unmount() { found.stop(); drift.stop(); state.stop(); newest(() => new Promise(() => {})); },
    };
  },
};
