// What the detections found: the list with its filters, all of them in the address, and what
// every rule looks for.
import {h, swap, card, table, name, names, time, count, plural} from '../dom.js';
import {ask, latest} from '../api.js';
import {link, lead, visit} from '../router.js';
import {rangeOf} from '../range.js';
import {who, subjectOf} from '../links.js';
import {SEVERITIES, severity, sentence} from '../words.js';
import {part} from '../part.js';
import {empty, failed} from './panels.js';
import {found} from './finding.js';

const FILTERS = ['severity', 'rule', 'subject'];
const NONE = {severity: null, rule: null, subject: null, before: null, finding: null, since: null, why: null, request: null};

export default {
  title: 'Findings',
  scoped: true,
  mount(root) {
    const bar = h('div', {class: 'filters'}), list = h('div', {class: 'list'}, h('div', {class: 'loading'}));
    const listed = card('', 'Findings', 'newest first; choose one to see the requests behind it');
    listed.body.replaceChildren(bar, list);
    const rules = card('', 'What the detections look for', 'rules over events and verdicts, with the findings of the list above');
    root.append(h('h1', {class: 'page'}, 'Findings'), listed.el, rules.el);

    let known = null; // the rules, asked once
    let counts = {}, params = new URLSearchParams();
    const drawRules = () => known && swap(rules.body, ruleTable(known, counts, params));
    const drawBar = () => swap(bar, filters(params, known, counts));
    const asking = latest();
    const learn = async () => {
      try {
        const answer = await asking(signal => ask('rules', {}, signal));
        if (!answer) return;
        known = answer.rules;
        drawRules();
        drawBar();
        if (live) body.update(live, false);
      } catch (err) {
        swap(rules.body, failed(err, learn));
      }
    };
    let live = null, range = null; // the question of the list and its time
    const body = part(list, 'findings', answer => rows(answer, params, known, range), {
      onAnswer: answer => { counts = answer?.rules ?? {}; drawRules(); if (!bar.contains(document.activeElement)) drawBar(); },
      follow: () => !params.get('before'),
    });
    learn();

    return {
      update(now, cluster, background) {
        range = rangeOf(cluster, now);
        live = {cluster: cluster.name, from: range.from.toISOString(), to: range.to.toISOString(), before: now.get('before'), limit: 50};
        for (const f of FILTERS) live[f] = now.get(f);
        params = now;
        if (!background) { drawBar(); drawRules(); }
        body.update(live, background);
      },
      unmount() { body.stop(); asking(() => new Promise(() => {})); },
    };
  },
};

function filters(params, known, counts) {
  const chosen = params.get('rule');
  const ids = (known ?? []).map(r => r.id);
  if (chosen && !ids.includes(chosen)) ids.push(chosen);
  const select = h('select', {'data-k': 'rule', 'aria-label': 'Rule', onchange: e => visit({rule: e.target.selectedIndex ? ['', ...ids][e.target.selectedIndex] : null, before: null})},
    h('option', {value: ''}, 'Every rule'), ids.map(id => h('option', {value: id}, counts[id] ? `${id} (${count(counts[id])})` : id)));
  select.selectedIndex = chosen ? ids.indexOf(chosen) + 1 : 0;
  const input = h('input', {type: 'search', 'data-k': 'subject', placeholder: 'Subject', 'aria-label': 'Subject, exactly', 'data-tip': 'Subject, written exactly as the log has it', onchange: e => visit({subject: e.target.value, before: null})});
  input.value = params.get('subject') ?? ''; // as a property it is taken as it is
  return [
    h('div', {class: 'group', role: 'group', 'aria-label': 'Severity, at least'}, SEVERITIES.slice(0, -1).map((s, i) => {
      const on = params.get('severity') === s;
      return h('button', {class: 'f-' + s, 'data-k': 's-' + s, 'aria-pressed': String(on), onclick: () => visit({severity: on ? null : s, before: null})}, i ? s + ' and up' : s);
    })),
    h('div', {class: 'group fields'}, select, input),
    params.get('subject') && h('a', {class: 'button plainly', 'data-k': 'about', href: subjectOf(params.get('subject'))}, 'About this subject'),
    FILTERS.some(f => params.get(f)) && h('button', {class: 'plainly', 'data-k': 'clear', onclick: () => visit(NONE)}, 'Clear filters'),
  ];
}

function rows(answer, params, known, range) {
  if (!answer.findings.length) return nothing(params, known);
  const when = moments(range);
  return [
    table(['Severity', 'Finding', 'Subject', 'MITRE ATT&CK', '#Requests', 'First (UTC)', 'Last (UTC)'], answer.findings.map(f => {
      const href = link(found(f));
      return {href, cells: [
        severity(f.severity),
        [h('a', {href, 'data-k': 'f' + f.id}, f.title || f.rule), h('div', {class: 'muted small'}, name(f.text, 200))],
        who(f.subject, 90, 's' + f.id), h('span', {class: 'mono small'}, names(f.attack, 6, s => name(s, 40))), count(f.count), when(f.first), when(f.last)]};
    }), 'rows findings'),
    h('div', {class: 'pages'},
      params.get('before') && h('a', {class: 'button', 'data-k': 'newest', href: link({before: null})}, '↑ Newest'),
      answer.older && h('a', {class: 'button', 'data-k': 'older', href: link({before: answer.older})}, 'Older ↓'))];
}

// moments words times; the day is said when the range has several.
function moments(range) {
  const one = time(range.from, true).slice(0, 10) === time(new Date(range.to - 1), true).slice(0, 10);
  return t => h('time', {'data-tip': time(t, true) + ' UTC'}, one ? time(t, true).slice(11) : time(t, true));
}

function nothing(params, known) {
  if (FILTERS.some(f => params.get(f))) return empty('No finding matches these filters.');
  return h('p', {class: 'empty'}, h('b', {}, 'Nothing was found in this range. '), known ? `${plural(known.length, 'rule')} looked at its requests: who got at more than before, guessed, tried out permissions, used credentials that should be gone, changed what guards the cluster. Each is named below.` : '');
}

// ruleTable lists the rules, worst first, each with what it found.
function ruleTable(known, counts, params) {
  const order = r => SEVERITIES.indexOf(r.severity);
  return table(['Severity', 'Rule', 'Kind', 'MITRE ATT&CK', '#Findings'], [...known].sort((a, b) => (counts[b.id] ?? 0) > 0 !== (counts[a.id] ?? 0) > 0 ? ((counts[b.id] ?? 0) > 0 ? 1 : -1) : order(a) - order(b) || (a.id < b.id ? -1 : 1)).map(r => {
    // The counts are those of the filters: of one rule when one is chosen.
    const n = counts[r.id] ?? 0, href = link({...NONE, rule: r.id}), told = !params.get('rule') || params.get('rule') === r.id;
    return {href, cells: [severity(r.severity),
      [h('a', {href, 'data-k': 'r' + r.id, 'aria-current': params.get('rule') === r.id && 'true'}, r.title), ' ', h('span', {class: 'mono muted small'}, name(r.id, 80)), h('div', {class: 'muted small'}, sentence(String(r.description ?? '').replace(/\.\s*$/, '')))],
      h('span', {class: 'muted'}, r.kind), h('span', {class: 'mono small'}, names(r.attack, 6, s => name(s, 40))), h('span', {class: n ? '' : 'muted'}, told ? count(n) : '–')]};
  }), 'rows rules');
}

// newest is the card of the first page: the worst of the newest findings.
export function newest() {
  const {el, body} = card('', 'Findings', 'the most severe findings in this range');
  const of = part(body, 'findings', (answer, where) => {
    const all = Object.values(answer.rules ?? {}).reduce((a, b) => a + b, 0);
    if (!answer.findings.length) return [empty('The detections found nothing in this range.'), h('p', {}, h('a', {href: lead('findings'), 'data-k': 'all-findings'}, 'What they look for'))];
    const worst = [...answer.findings].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || (a.last < b.last ? 1 : -1)).slice(0, 6);
    return [table(['Severity', 'Finding', '#Requests'], worst.map(f => {
      const href = link(found(f));
      return {href, cells: [severity(f.severity), [h('a', {href, 'data-k': 'f' + f.id}, f.title || f.rule), h('div', {class: 'small'}, who(f.subject, 60, 'fs' + f.id), h('span', {class: 'muted'}, ' ' + time(f.last, true)))], count(f.count)]};
    })), h('p', {class: 'onward'}, h('a', {href: lead('findings'), 'data-k': 'all-findings'}, `All ${plural(Math.max(all, answer.findings.length), 'finding')}`))];
  }, {follow: () => true});
  return {
    el,
    update(params, cluster, background) {
      const range = rangeOf(cluster, params);
      of.update({cluster: cluster.name, from: range.from.toISOString(), to: range.to.toISOString(), limit: 200}, background);
    },
    stop: of.stop,
  };
}
