// The drawer beside the page: it answers "why" for the request named in the address, or shows
// the finding named there. A request opened from a finding leads back to it.
import {h, name} from '../dom.js';
import {ask, latest} from '../api.js';
import {visit} from '../router.js';
import {why} from './why.js';
import {finding, findingOf} from './finding.js';

// SHEETS are what it can hold, the first that the address names: looked up by load, drawn by
// draw; gone are the parameters that are left out when it closes.
const SHEETS = [
  {
    key: 'why', title: 'Why this request was decided as it was', gone: {why: null, request: null},
    focus: params => params.get('request') && 'r' + params.get('request'),
    load: (id, cluster, signal) => ask('why', {auditID: id, cluster: cluster.name}, signal),
    draw: (answer, id, params) => why(answer, id, params.get('request')),
  },
  {
    key: 'finding', title: 'A finding', gone: {finding: null, since: null},
    focus: params => 'f' + params.get('finding'),
    load: findingOf,
    draw: (answer, id, params, cluster) => finding(answer, id, cluster),
  },
];

export function drawer() {
  const el = document.getElementById('drawer');
  const newest = latest();
  let sheet = null, open = ''; // what is shown, and for which question
  let back = null; // data-k of what had the focus before

  const leave = () => visit(sheet.gone);
  addEventListener('keydown', e => { if (e.key === 'Escape' && !el.hidden) leave(); });
  const fill = (...children) => {
    el.replaceChildren(h('button', {class: 'close', onclick: leave, 'aria-label': 'Close', title: 'Close (Esc)'}, '×'), ...children.filter(Boolean));
  };
  const close = () => {
    if (!el.hidden) {
      el.hidden = true;
      el.replaceChildren();
      [...document.querySelectorAll('[data-k]')].find(x => x.dataset.k === back)?.focus({preventScroll: true});
      newest(() => new Promise(() => {}));
    }
    open = '';
  };

  return {
    async update(params, cluster) {
      const next = SHEETS.find(s => params.get(s.key));
      if (!next) return close();
      const id = params.get(next.key);
      const question = JSON.stringify([next.key, id, cluster.name, params.get('request')]);
      if (question === open) return;
      if (el.hidden) back = document.activeElement?.dataset?.k ?? next.focus(params);
      sheet = next;
      open = question;
      el.hidden = false;
      el.setAttribute('aria-label', sheet.title);
      const behind = SHEETS.find(s => s !== next && params.get(s.key));
      const lead = behind && h('a', {class: 'behind', href: '#', onclick: e => { e.preventDefault(); visit(next.gone); }}, '← Back to the finding');
      fill(lead, h('p', {class: 'muted'}, 'Looking up ', name(id, 80), ' …'));
      el.focus({preventScroll: true});
      try {
        const answer = await newest(signal => next.load(id, cluster, signal, params));
        if (answer === undefined || open !== question) return;
        fill(lead, next.draw(answer, id, params, cluster));
      } catch (err) {
        open = '';
        fill(lead, h('h2', {}, 'This could not be looked up'), h('p', {role: 'alert'}, err.message));
      }
      el.scrollTop = 0;
      el.focus({preventScroll: true});
    },
    close,
  };
}
