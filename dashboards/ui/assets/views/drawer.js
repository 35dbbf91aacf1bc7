// The drawer beside the page that answers "why", for the request named in the address.
import {h, name} from '../dom.js';
import {ask, latest} from '../api.js';
import {visit} from '../router.js';
import {why} from './why.js';

export function drawer() {
  const el = document.getElementById('drawer');
  const newest = latest();
  let open = ''; // the question that is answered
  let back = null; // data-k of what had the focus before

  const leave = () => visit({why: null, request: null});
  const onKey = e => { if (e.key === 'Escape' && !el.hidden) leave(); };
  addEventListener('keydown', onKey);

  const close = () => {
    if (!el.hidden) {
      el.hidden = true;
      el.replaceChildren();
      [...document.querySelectorAll('[data-k]')].find(x => x.dataset.k === back)?.focus({preventScroll: true});
    }
    open = '';
  };
  const fill = (...children) => {
    el.replaceChildren(h('button', {class: 'close', onclick: leave, 'aria-label': 'Close', title: 'Close (Esc)'}, '×'), ...children);
  };

  return {
    async update(params, cluster) {
      const id = params.get('why');
      if (!id) return close();
      const question = JSON.stringify([id, cluster.name, params.get('request')]);
      if (question === open) return;
      if (el.hidden) back = document.activeElement?.dataset?.k ?? (params.get('request') ? 'r' + params.get('request') : null);
      open = question;
      el.hidden = false;
      fill(h('p', {class: 'muted'}, 'Looking up ', name(id, 80), ' …'));
      el.focus({preventScroll: true});
      try {
        const answer = await newest(signal => ask('why', {auditID: id, cluster: cluster.name}, signal));
        if (!answer || open !== question) return;
        fill(why(answer, id, params.get('request')));
      } catch (err) {
        open = '';
        fill(h('h2', {}, 'This could not be looked up'), h('p', {role: 'alert'}, err.message));
      }
      el.scrollTop = 0;
      el.focus({preventScroll: true});
    },
    close() { removeEventListener('keydown', onKey); close(); },
  };
}
