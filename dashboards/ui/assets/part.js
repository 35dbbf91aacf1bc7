// A part is a card whose content answers one question of the API. It asks again only when
// the question changed, drops answers that came too late, and tells what went wrong in its
// own place. What arrives in the background waits until the reader asks for it.
import {h, swap} from './dom.js';
import {ask, latest} from './api.js';
import {empty, failed} from './views/panels.js';

// part asks route and paints the answer into body: paint(answer, where, ...more) returns what
// to show. update(where, background, ...more) brings it in line with a question (null: none is
// asked, paint gets null); more are passed on. onAnswer(answer or null) is told of every change.
// In the background a part that follows asks again, and shows at once what nobody is reading;
// another one only says that there may be news.
export function part(body, route, paint, {onAnswer = () => {}, follow} = {}) {
  const newest = latest();
  let shown = '', under = '', answer = null, more = [], watching = false;
  const offer = show => body.querySelector('.news') || body.prepend(h('button', {class: 'news', 'data-k': 'news', onclick: show}, 'Show the newer answer'));

  const draw = where => swap(body, paint(answer, where, ...more));
  const load = async where => {
    const question = under = JSON.stringify(where);
    body.classList.add('stale');
    try {
      const got = await newest(signal => ask(route, where, signal));
      if (!got) return;
      answer = got;
      shown = question;
      draw(where);
    } catch (err) {
      answer = null;
      shown = under = '';
      // That there is nothing under a name is an answer.
      swap(body, err.status === 404 ? empty(err.message) : failed(err, () => load(where)));
    }
    onAnswer(answer);
    body.classList.remove('stale');
  };

  // watch asks without a word; a failure leaves what is shown.
  const watch = async where => {
    const question = JSON.stringify(where);
    watching = true;
    try {
      const got = await newest(signal => ask(route, where, signal));
      if (!got || question === shown && JSON.stringify(got) === JSON.stringify(answer)) return;
      const show = () => { answer = got; shown = under = question; draw(where); onAnswer(answer); };
      reading(body) ? offer(show) : show();
    } catch { /* the status tells */ } finally {
      watching = false;
    }
  };

  return {
    update(where, background, ...rest) {
      const question = JSON.stringify(where);
      if (background) {
        if (!where || !shown || under !== shown || watching) return; // nothing is shown yet, or it is being asked
        if (follow?.()) watch(where);
        else if (question !== shown) offer(() => load(where));
        return;
      }
      more = rest;
      if (where && question !== shown) {
        if (question !== under) load(where);
        return;
      }
      if (question !== under) this.stop();
      if (!where && shown !== question) onAnswer(answer = null);
      under = shown = question;
      body.classList.remove('stale');
      draw(where);
    },
    // stop gives up what is asked.
    stop() { newest(() => new Promise(() => {})); },
  };
}

// reading reports whether somebody is at something: then it must not move.
export function reading(el) {
  return !document.getElementById('drawer').hidden || el.contains(document.activeElement) || el.matches(':hover') || el.getBoundingClientRect().top < 0 || String(getSelection()) !== '';
}
