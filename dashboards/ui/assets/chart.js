// The volume chart: stacked bars over time, drawn as SVG.
import {svg, h, count, time} from './dom.js';

const W = 1000, H = 190, LEFT = 46, BOTTOM = 20, TOP = 8;

// volume draws buckets [{t, allow, forbid, none}]; onPick(from, to) is called with the
// bucket that was chosen.
export function volume(buckets, seconds, onPick) {
  const series = ['allow', 'forbid', 'none'];
  const names = {allow: 'allowed', forbid: 'forbidden', none: 'no decision recorded'};
  const top = nice(Math.max(1, ...buckets.map(b => series.reduce((s, k) => s + (b[k] ?? 0), 0))));
  const y = v => TOP + (H - TOP - BOTTOM) * (1 - v / top);
  const slot = (W - LEFT) / Math.max(1, buckets.length);
  const chart = svg('svg', {class: 'chart', viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'events over time'});
  for (const part of [0, 0.5, 1]) {
    chart.append(
      svg('line', {class: 'grid', x1: LEFT, x2: W, y1: y(top * part), y2: y(top * part)}),
      svg('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, count(top * part)));
  }
  buckets.forEach((b, i) => {
    const g = svg('g', {tabindex: 0}, svg('title', {}, `${time(b.t, true)} UTC\n` + series.map(k => `${names[k]}: ${count(b[k])}`).join('\n')));
    let sum = 0;
    for (const k of series) {
      const v = b[k] ?? 0;
      if (!v) continue;
      const up = y(sum + v), down = y(sum);
      g.append(svg('rect', {class: 'fill-' + k, x: LEFT + i * slot + slot * 0.1, width: Math.max(0.6, slot * 0.8), y: up, height: Math.max(0.5, down - up)}));
      sum += v;
    }
    g.append(svg('rect', {class: 'hit', x: LEFT + i * slot, width: slot, y: TOP, height: H - TOP - BOTTOM}));
    const pick = () => onPick(new Date(b.t), new Date(new Date(b.t).getTime() + seconds * 1000));
    g.addEventListener('click', pick);
    g.addEventListener('keydown', e => { if (e.key === 'Enter') pick(); });
    chart.append(g);
  });
  const marks = Math.min(6, buckets.length);
  for (let m = 0; m < marks; m++) {
    const i = Math.floor(m * buckets.length / marks);
    chart.append(svg('text', {x: LEFT + i * slot, y: H - 5}, time(buckets[i].t, seconds >= 86400).slice(0, seconds >= 86400 ? 10 : 8)));
  }
  return h('div', {}, chart, h('div', {class: 'legend'}, series.map(k => h('span', {}, h('i', {class: 'bg-' + k}), names[k]))));
}

// nice rounds up to 1, 2 or 5 times a power of ten.
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v));
  for (const f of [1, 2, 5, 10]) if (v <= f * p) return f * p;
  return v;
}
