// The volume chart: stacked bars over time, drawn as SVG in the pixels it is given.
import {svg, h, count, time, span} from './dom.js';
import * as tips from './tips.js';

const H = 336, LEFT = 48, BOTTOM = 22, TOP = 14;
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200, 7776000, 31536000];

// volume draws buckets [{t, ...counts}] of the range [from, to). series is [[member, name]],
// drawn from the bottom up. onPick(from, to) is called with the stretch that was chosen: a
// bucket by click or Enter, several by dragging.
export function volume({buckets, seconds, from, to, series, onPick}) {
  const holder = h('div', {class: 'chart', tabindex: 0, role: 'img', 'aria-label': `Requests over time, ${buckets.length} bars. Arrow keys choose a bar, Enter shows its time alone.`});
  let drawn;
  const draw = () => {
    const width = Math.max(280, Math.round(holder.clientWidth));
    if (drawn?.width !== width) holder.replaceChildren((drawn = plot(width, {buckets, seconds, from, to, series})).el);
  };
  new ResizeObserver(draw).observe(holder);
  let chosen = -1, began = null;
  const bucketAt = e => drawn?.at(e.clientX - holder.getBoundingClientRect().left);
  const point = i => {
    chosen = i;
    drawn?.mark(i, began ?? i);
    const b = buckets[i];
    if (!b) return tips.hide();
    const box = holder.getBoundingClientRect(), x = drawn.x(i);
    tips.show([span(b.t, end(b)), ...[...series].reverse().map(([k, name]) => `${name}: ${count(b[k])}`)].join('\n'), {left: box.left + x, width: 0, top: box.top + TOP, bottom: box.bottom});
  };
  const end = b => new Date(new Date(b.t).getTime() + seconds * 1000);
  const pick = (i, j) => {
    const [a, b] = [buckets[Math.min(i, j)], buckets[Math.max(i, j)]];
    if (a && b) onPick(new Date(a.t), end(b));
  };
  holder.addEventListener('pointermove', e => { const i = bucketAt(e); if (i !== undefined && i !== chosen) point(i); });
  holder.addEventListener('pointerdown', e => { if (e.button === 0) began = bucketAt(e) ?? null; });
  holder.addEventListener('pointerup', e => { const i = bucketAt(e); if (began !== null && i !== undefined) pick(began, i); began = null; });
  holder.addEventListener('pointerleave', () => { began = null; point(-1); });
  holder.addEventListener('blur', () => point(-1));
  holder.addEventListener('keydown', e => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
    if (step) { e.preventDefault(); point(Math.min(buckets.length - 1, Math.max(0, chosen < 0 ? (step > 0 ? 0 : buckets.length - 1) : chosen + step))); }
    if (e.key === 'Enter' && chosen >= 0) pick(chosen, chosen);
  });
  return h('div', {}, holder,
    h('div', {class: 'legend'}, series.map(([k, name]) => h('span', {}, h('i', {class: 'bg-' + k}), name)), h('span', {class: 'hint'}, 'Drag to zoom in')));
}

function plot(W, {buckets, seconds, from, to, series}) {
  const t0 = Math.min(from.getTime(), ...buckets.map(b => new Date(b.t).getTime()));
  const t1 = Math.max(to.getTime(), ...buckets.map(b => new Date(b.t).getTime() + seconds * 1000));
  const scale = (W - LEFT - 4) / Math.max(1, t1 - t0);
  const left = b => LEFT + (new Date(b.t).getTime() - t0) * scale;
  const slot = Math.max(1, seconds * 1000 * scale);
  const total = b => series.reduce((s, [k]) => s + (b[k] ?? 0), 0);
  const top = nice(Math.max(1, ...buckets.map(total)));
  const y = v => TOP + (H - TOP - BOTTOM) * (1 - v / top);
  const el = svg('svg', {width: W, height: H, 'aria-hidden': 'true'});
  for (const part of top > 1 ? [0, 0.5, 1] : [0, 1]) {
    el.append(svg('line', {class: 'grid', x1: LEFT, x2: W, y1: y(top * part), y2: y(top * part)}),
      svg('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, brief(top * part)));
  }
  const step = TICKS.find(s => s * 1000 * scale >= 86) ?? TICKS.at(-1);
  for (let t = Math.ceil(t0 / step / 1000) * step * 1000; t <= t1; t += step * 1000) {
    const x = LEFT + (t - t0) * scale;
    if (x > W - 34) break;
    const text = time(t, true);
    el.append(svg('line', {class: 'tick', x1: x, x2: x, y1: y(0), y2: y(0) + 4}),
      svg('text', {x, y: H - 5, 'text-anchor': x < LEFT + 24 ? 'start' : 'middle'}, step >= 86400 ? text.slice(step >= 2419200 ? 0 : 5, step >= 2419200 ? 7 : 10) : text.slice(11, step < 60 ? 19 : 16)));
  }
  const mark = svg('rect', {class: 'mark', y: TOP, height: H - TOP - BOTTOM, width: 0, x: 0});
  el.append(mark);
  const gap = slot > 6 ? Math.min(3, slot * 0.16) : slot > 2.5 ? 1 : 0;
  const wide = Math.max(1, slot - gap);
  for (const b of buckets) {
    let sum = 0;
    for (const [k] of series) {
      const v = b[k] ?? 0;
      if (!v) continue;
      const up = y(sum + v), down = y(sum);
      el.append(svg('rect', {class: 'fill-' + k, x: left(b) + gap / 2, width: wide, y: up, height: Math.max(0.5, down - up)}));
      sum += v;
    }
    // A drift is one among thousands: no bar of it would be seen.
    if (b.drift) el.append(svg('circle', {class: 'fill-drift', cx: left(b) + slot / 2, cy: y(sum) - 6, r: 3.5}));
  }
  return {
    el, width: W,
    x: i => left(buckets[i]) + slot / 2,
    at: x => { const i = buckets.findIndex(b => x >= left(b) - 0.01 && x < left(b) + slot); return i < 0 ? undefined : i; },
    mark: (i, j) => {
      const a = buckets[Math.min(i, j)], b = buckets[Math.max(i, j)];
      mark.setAttribute('x', a && b ? left(a) : 0);
      mark.setAttribute('width', a && b ? left(b) + slot - left(a) : 0);
    },
  };
}

// nice rounds up to 1, 2, 4, 6 or 8 times a power of ten, so that its half is round too.
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v));
  for (const f of [1, 2, 4, 6, 8, 10]) if (v <= f * p) return f * p;
  return v;
}

function brief(v) { return v >= 1e6 ? v / 1e6 + ' M' : v >= 1e4 ? v / 1e3 + ' k' : count(v); }
