// A part is a card whose content answers one question of the API. It asks again only when
// the question changed, drops answers that came too late, and tells what went wrong in its
// own place. What arrives in the background waits until the reader asks for it.
import {h, swap} from './dom.js';
import {ask, latest} from './api.js';
import {empty, failed} from './views/panels.js';

// part asks route and paints the answer into body: paint(answer, where, ...more) returns what
// to show. update(where, background, ...more) brings it in line with a question (null: none is
// asked, paint gets null); more are passed on. onAnswer(answer or null) is told of every change.
// follow(): whether news may be shown at once.
export function part(body, route, paint, {onAnswer = () => {}, follow = () => false} = {}) {
  const newest = latest();
  let shown = '', under = '', answer = null, more = [];

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

  return {
    update(where, background, ...rest) {
      const question = JSON.stringify(where);
      if (background) {
        if (!where || question === under || !shown) return;
        if (follow() && !reading(body)) load(where);
        else if (!body.querySelector('.news')) body.prepend(h('button', {class: 'news', 'data-k': 'news', onclick: () => load(where)}, 'There is news: show it'));
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
