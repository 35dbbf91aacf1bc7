// Explanations: an element with data-tip shows it when it is pointed at or has the focus.

const tip = document.getElementById('tip');

// show puts text (lines) beside a rectangle of the screen.
export function show(text, at) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, at.left + at.width / 2 - box.width / 2), innerWidth - box.width - 8);
  const above = at.top - box.height - 8;
  tip.style.left = left + 'px';
  tip.style.top = (above > 4 ? above : at.bottom + 8) + 'px';
}

export function hide() { tip.hidden = true; }

function over(e) {
  const el = e.target.closest?.('[data-tip]');
  if (!el?.dataset.tip) return hide();
  el.setAttribute('aria-describedby', 'tip');
  show(el.dataset.tip, el.getBoundingClientRect());
}

// start begins to listen.
export function start() {
  addEventListener('mouseover', over);
  addEventListener('focusin', over);
  addEventListener('scroll', hide, {capture: true, passive: true});
  addEventListener('keydown', e => { if (e.key === 'Escape') hide(); });
}
