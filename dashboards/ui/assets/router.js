// The address holds the state of the page, so that every view is a link:
//
//	#/?cluster=prod&range=24h            the overview
//	#/?cluster=prod&why=AUDIT-ID         the same with the answer to "why" open
//	#/subject?cluster=prod&subject=alice another view: a subject
//	#/findings?cluster=prod&finding=ID   what detections found, one of them open
//	#/access?cluster=prod&verb=get&…     who can do something, and could at a time
//	#/verdicts                           what the verdicts mean
//
// A view is named by the path, its state are the parameters. Values are never trusted: they
// go to the API as parameters and to the page as text.

// FORMER are names that parameters had: addresses that somebody kept still lead where they did.
const FORMER = {user: 'subject'};

// here returns the view and the parameters of the current address.
export function here() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const params = new URLSearchParams(query ?? '');
  for (const [old, now] of Object.entries(FORMER)) {
    if (!params.has(now) && params.get(old)) params.set(now, params.get(old));
    params.delete(old);
  }
  return {view: path.replace(/\/+$/, ''), params};
}

// link returns the address of the current view with some parameters changed; null and ''
// remove one.
export function link(changes, view) {
  const now = here();
  for (const [k, v] of Object.entries(changes)) v === null || v === '' ? now.params.delete(k) : now.params.set(k, v);
  const query = now.params.toString();
  return '#/' + (view ?? now.view) + (query ? '?' + query : '');
}

// STAY are the parameters that every view has: leaving for another one keeps them.
const STAY = ['cluster', 'range', 'from', 'to'];

// lead returns the address of another view of the same cluster and time, with parameters of
// its own.
export function lead(view, params) {
  const kept = new URLSearchParams();
  for (const k of STAY) if (here().params.get(k)) kept.set(k, here().params.get(k));
  for (const [k, v] of Object.entries(params ?? {})) v === null || v === undefined || v === '' ? kept.delete(k) : kept.set(k, v);
  const query = kept.toString();
  return '#/' + view + (query ? '?' + query : '');
}

// visit goes there; replace does so without a step in the history.
export function visit(changes, view) { location.hash = link(changes, view); }
export function replace(changes) { history.replaceState(null, '', link(changes)); }
