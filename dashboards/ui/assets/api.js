// The local API, as docs/api.md describes it.

// ask returns the answer of api/v1/<path>. Empty parameters are left out. What it throws says
// for people what went wrong; status is the server's code, if it answered.
export async function ask(path, params, signal) {
  const url = new URL('api/v1/' + path, document.baseURI);
  for (const [k, v] of Object.entries(params ?? {})) if (v) url.searchParams.set(k, v);
  let res;
  try {
    res = await fetch(url, {headers: {Accept: 'application/json'}, signal});
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new Error('The server cannot be reached. Is retrial serve still running?');
  }
  if (!res.ok) throw Object.assign(new Error((await res.text()).trim() || `the server answered ${res.status}`), {status: res.status});
  return res.json();
}

// latest returns a function that asks and gives up its question before when it is called
// again, so that a slow answer never paints over a newer one.
export function latest() {
  let under;
  return async work => {
    under?.abort();
    const mine = under = new AbortController();
    try {
      const answer = await work(mine.signal);
      return mine.signal.aborted ? undefined : answer;
    } catch (err) {
      if (mine.signal.aborted) return undefined;
      throw err;
    }
  };
}
