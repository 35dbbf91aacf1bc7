// How far the connection of a cluster is: the steps from a certificate to verdicts, and what
// to do for the one that waits.
import {h, lines, swap, card} from '../dom.js';
import {ask, latest} from '../api.js';

const STATES = {done: 'done', waiting: 'waiting', failed: 'failed'};

// connection is a card that shows itself when the cluster is one that connects and a step of
// it is not done.
export function connection(width) {
  const {el, body} = card(width, 'Connection', 'from the apiserver’s audit webhook to verdicts');
  const newest = latest();
  body.replaceChildren();
  el.hidden = true;
  return {
    el,
    async update(where) {
      try {
        const answer = await newest(signal => ask('connection', where, signal));
        if (!answer) return;
        el.hidden = !telling(answer.steps);
        if (!el.hidden) swap(body, steps(answer.steps));
      } catch { /* the card only helps; what is wrong shows where it matters */ }
    },
    stop() { newest(() => new Promise(() => {})); },
  };
}

// telling: a cluster that was only imported is not connected and need not be.
function telling(list) {
  return list?.find(s => s.id === 'registered')?.state === 'done' && list.some(s => s.state !== 'done');
}

function steps(list) {
  const next = list.findIndex(s => s.state !== 'done');
  return h('ol', {class: 'steps'}, list.map((s, i) => h('li', {class: 'step is-' + (s.state in STATES ? s.state : 'waiting')},
    h('b', {}, s.title), ' ', h('span', {class: 'muted'}, STATES[s.state] ?? s.state),
    s.text && h('div', {}, s.text),
    s.todo && (i === next || s.state === 'failed') && h('pre', {tabindex: 0}, lines(...s.todo.split('\n'))))));
}
