// The address holds the state of the page, so that every view is a link:
//
//	#/?cluster=prod&range=24h            the overview
//	#/?cluster=prod&why=AUDIT-ID         the same with the answer to "why" open
//	#/verdicts                           another view
//
// A view is named by the path, its state are the parameters. Values are never trusted: they
// go to the API as parameters and to the page as text.

// here returns the view and the parameters of the current address.
export function here() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return {view: path.replace(/\/+$/, ''), params: new URLSearchParams(query ?? '')};
}

// link returns the address of the current view with some parameters changed; null and ''
// remove one.
export function link(changes, view) {
  const now = here();
  for (const [k, v] of Object.entries(changes)) v === null || v === '' ? now.params.delete(k) : now.params.set(k, v);
  const query = now.params.toString();
  return '#/' + (view ?? now.view) + (query ? '?' + query : '');
}

// visit goes there; replace does so without a step in the history.
export function visit(changes, view) { location.hash = link(changes, view); }
export function replace(changes) { history.replaceState(null, '', link(changes)); }
