// Draws stacked bars by uPlot. A chunk of its own, loaded by Chart.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { stamp } from './Time';

/** Plot is a drawn chart. */
export interface Plot {
  destroy: () => void;
}

interface Drawing {
  /** starts of the bars and moments to mark, in seconds. */
  starts: number[];
  ticks: number[];
  values: number[][];
  tones: string[];
  seconds: number;
  height: number;
  utc: boolean;
  onPoint: (bar: number | null) => void;
  onPick: (from: number, to: number) => void;
}

/** draw draws into an element and follows its width. */
export function draw(into: HTMLElement, d: Drawing): Plot {
  const end = (d.starts.at(-1) ?? 0) + d.seconds;
  const grid = { stroke: colour(into, '--line'), width: 1 };
  const axis = { stroke: colour(into, '--soft'), font: `12px ${getComputedStyle(into).fontFamily}`, grid, ticks: { ...grid, size: 4 } };
  // The bar of all series first, then that of all but the last …: each is drawn over the one before.
  const sums = d.values.reduce<number[][]>((all, v) => [...all, v.map((x, i) => x + (all.at(-1)?.[i] ?? 0))], []).reverse();
  const bars = uPlot.paths.bars?.({ size: [0.86, 60], align: 1 });
  const chart = new uPlot({
    width: into.clientWidth, height: d.height, legend: { show: false }, padding: [8, 32, 0, 0], // half of the last label
    tzDate: (t) => (d.utc ? uPlot.tzDate(new Date(t * 1000), 'Etc/UTC') : new Date(t * 1000)),
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    scales: { x: { range: () => [d.starts[0] ?? 0, end] }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.06)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, gap: 3, space: 76, values: (_, splits, __, ___, step) => splits.map((t) => tick(t, step, d.utc)) },
      { ...axis, size: 46, gap: 4, values: (_, splits) => splits.map((v) => (Number.isInteger(v) ? brief(v) : '')) },
    ],
    series: [{}, ...[...d.tones].reverse().map((tone) => ({ fill: colour(into, `--${tone}`), width: 0, ...(bars && { paths: bars }), points: { show: false } }))],
    hooks: {
      setCursor: [(u) => d.onPoint((u.cursor.left ?? -1) < 0 ? null : barAt(u.posToVal(u.cursor.left ?? 0, 'x')))],
      setSelect: [(u) => {
        if (!u.select.width) return;
        const a = barAt(u.posToVal(u.select.left, 'x'));
        const b = barAt(u.posToVal(u.select.left + u.select.width, 'x'));
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        d.onPick(d.starts[a] ?? 0, (d.starts[b] ?? 0) + d.seconds);
      }],
      draw: [(u) => mark(u, d.ticks, colour(into, '--accent'))],
    },
  }, [d.starts, ...sums] as uPlot.AlignedData, into);

  function barAt(t: number): number {
    return Math.max(0, Math.min(d.starts.length - 1, Math.floor((t - (d.starts[0] ?? 0)) / d.seconds)));
  }

  const watch = new ResizeObserver(() => chart.setSize({ width: into.clientWidth, height: d.height }));
  watch.observe(into);
  return { destroy: () => { watch.disconnect(); chart.destroy(); } };
}

/** mark draws a small triangle below the bars at each moment. */
function mark(u: uPlot, ticks: number[], fill: string): void {
  const { ctx, bbox } = u;
  const size = 5 * devicePixelRatio;
  ctx.fillStyle = fill;
  for (const t of ticks) {
    const x = u.valToPos(t, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const y = bbox.top + bbox.height;
    ctx.beginPath();
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y + size);
    ctx.lineTo(x - size, y + size);
    ctx.fill();
  }
}

/** colour is what a token of base.css is now; a canvas does not know light-dark(). */
function colour(at: HTMLElement, token: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${token})`;
  at.append(probe);
  const is = getComputedStyle(probe).color;
  probe.remove();
  return is;
}

/** tick writes a moment of the axis as exactly as its steps are; midnight as its day. */
function tick(t: number, step: number, utc: boolean): string {
  const written = stamp(new Date(t * 1000), utc ? 'UTC' : 'local');
  const time = written.slice(11, step < 60 ? 19 : 16);
  return step >= 86_400 || /^00:00/.test(time) ? written.slice(5, 10) : time;
}

function brief(v: number): string {
  return v >= 1e6 ? `${v / 1e6} M` : v >= 1e4 ? `${v / 1e3} k` : v.toLocaleString('en-US');
}
