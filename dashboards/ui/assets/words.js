// The words of the page. What outcomes and classes mean is asked from the server once, so
// that page, commands and documents say the same.
import {h} from './dom.js';

export const OUTCOMES = ['match', 'drift', 'ambiguous', 'indeterminate', 'not_judged'];
export const DECISIONS = {allow: 'allowed', forbid: 'forbidden', none: 'no decision'};

// SEVERITIES of findings, the worst first, as the detections have them.
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'];

const meaning = {outcomes: {}, classes: {}};

// learn takes the answer of api/v1/classes.
export function learn(answer) {
  for (const o of answer.outcomes) meaning.outcomes[o.outcome] = o.text;
  for (const c of answer.classes) meaning.classes[c.class] = c.text;
}

export function label(outcome) { return String(outcome).replace('_', ' '); }
export function explain(outcome) { return meaning.outcomes[outcome] ?? ''; }
export function explainClass(cls) { return sentence(meaning.classes[cls] ?? ''); }
export function sentence(s) { return s && s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.'); }

// chip shows an outcome, explained when pointed at.
export function chip(outcome, text) {
  return h('span', {class: 'chip is-' + (OUTCOMES.includes(outcome) ? outcome : 'none'), 'data-tip': text ?? explain(outcome)}, outcome ? label(outcome) : 'no verdict');
}

// decision shows what was decided.
export function decision(d) {
  return h('span', {class: 'decision d-' + (d in DECISIONS ? d : 'none')}, DECISIONS[d] ?? 'no decision');
}

// severity shows how bad a finding is.
export function severity(s) {
  return h('span', {class: 'chip s-' + (SEVERITIES.includes(s) ? s : 'info')}, s || 'none');
}
