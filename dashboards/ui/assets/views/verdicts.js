// What outcomes and classes mean, in the words the server uses.
import {h, table} from '../dom.js';
import {ask} from '../api.js';
import {link} from '../router.js';
import {chip, sentence} from '../words.js';
import {failed} from './panels.js';

export default {
  title: 'What the verdicts mean',
  scoped: false,
  mount(root) {
    const body = h('div', {class: 'loading'});
    root.append(h('section', {class: 'card prose'}, h('a', {href: link({}, '')}, '← Back to the requests'), h('h1', {}, 'What the verdicts mean'),
      h('p', {}, 'Kubernetes records who asked the apiserver for what, and whether it was allowed. Retrial takes each of these requests and decides it a second time, from roles and bindings as they were at that time, without looking at the recorded decision. Then it compares. The result is the request’s verdict.'),
      h('p', {}, 'A grant is one path that makes a request possible: a subject, a binding that names it, and the rule of a role that allows it. The apiserver names one of them; Retrial lists all, because taking one away changes nothing as long as another is left.'),
      body));
    return {
      async update() {
        try {
          const answer = await ask('classes');
          body.className = '';
          body.replaceChildren(...answer.outcomes.map(o => {
            const classes = answer.classes.filter(c => c.outcome === o.outcome);
            return h('section', {id: 'outcome-' + o.outcome}, h('h2', {}, chip(o.outcome, '')), h('p', {}, o.text),
              classes.length > 0 && table(['Class', 'Meaning'], classes.map(c => ({cells: [h('span', {class: 'mono'}, c.class), sentence(c.text)]}))));
          }));
        } catch (err) {
          body.className = '';
          body.replaceChildren(failed(err, () => this.update()));
        }
      },
      unmount() {},
    };
  },
};
