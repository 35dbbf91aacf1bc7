// Rows in order: the largest number first, texts from A to Z, or the other way round.

/** Rows from which on ordering goes in slices, between which the page does whatever else there is. */
export const MANY = 20_000;

/** Milliseconds of a slice. */
const SLICE = 10;
/** Rows that are ordered at a stroke before such runs are joined. */
const RUN = 2048;

type Key = number | string;

/** compare puts the largest number first, and texts from A to Z. */
function compare(a: Key, b: Key): number {
  if (typeof a === 'number' && typeof b === 'number') return b - a;
  return String(a) < String(b) ? -1 : a === b ? 0 : 1;
}

/** ordered returns rows by their keys; up: the other way round. Those with one key stay as they were. */
export function ordered<Row>(rows: Row[], by: (row: Row) => Key, up: boolean): Row[] {
  const keys = new Map(rows.map((r) => [r, by(r)]));
  const order = (a: Row, b: Row) => compare(keys.get(a) ?? 0, keys.get(b) ?? 0);
  return [...rows].sort((a, b) => (up ? order(b, a) : order(a, b)));
}

/** orderedInSlices is ordered for many rows. It ends with an error when the signal says so. */
export async function orderedInSlices<Row>(rows: Row[], by: (row: Row) => Key, up: boolean, signal: AbortSignal): Promise<Row[]> {
  let began = performance.now();
  const pause = async () => {
    if (performance.now() - began < SLICE) return;
    await new Promise((go) => setTimeout(go));
    signal.throwIfAborted();
    began = performance.now();
  };
  const n = rows.length;
  const keys: Key[] = [];
  for (const row of rows) {
    keys.push(by(row));
    if (keys.length % RUN === 0) await pause();
  }
  const order = (a: number, b: number) => (up ? compare(keys[b] ?? 0, keys[a] ?? 0) : compare(keys[a] ?? 0, keys[b] ?? 0)) || a - b;
  let from = new Uint32Array(n);
  let to = new Uint32Array(n);
  for (let begin = 0; begin < n; begin += RUN) {
    const run = from.subarray(begin, begin + RUN);
    for (let i = 0; i < run.length; i++) run[i] = begin + i;
    run.sort(order);
    await pause();
  }
  for (let long = RUN; long < n; long *= 2) {
    for (let begin = 0; begin < n; begin += 2 * long) {
      const [middle, end] = [Math.min(begin + long, n), Math.min(begin + 2 * long, n)];
      let [a, b] = [begin, middle];
      for (let i = begin; i < end; i++) {
        const first = b >= end || (a < middle && order(from[a] ?? 0, from[b] ?? 0) < 0);
        to[i] = from[first ? a++ : b++] ?? 0;
        if (i % RUN === 0) await pause();
      }
    }
    [from, to] = [to, from];
  }
  return Array.from(from, (i) => rows[i] as Row);
}
