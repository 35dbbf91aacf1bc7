// The stretch of time that is looked at.

// RANGES that can be chosen: name in the address, text, seconds (0: all), explanation.
export const RANGES = [['all', 'All', 0, 'Everything that is stored'], ['7d', '7 d', 7 * 86400], ['24h', '24 h', 86400], ['1h', '1 h', 3600], ['15m', '15 min', 900]];

// rangeOf turns the chosen range into instants. Ranges end with the newest event, not at the
// clock: a recording from last month opens on last month.
export function rangeOf(cluster, params) {
  const [a, b] = [new Date(params.get('from')), new Date(params.get('to'))];
  if (params.get('from') && a < b) return {from: a, to: b, fixed: true};
  const first = new Date(cluster.first), last = new Date(cluster.last);
  const seconds = RANGES.find(r => r[0] === params.get('range'))?.[2];
  return {from: seconds ? new Date(Math.max(first, last - seconds * 1000)) : first, to: last, fixed: false};
}
