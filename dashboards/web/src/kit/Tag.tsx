import type { ReactNode } from 'react';
import { useConstant } from '../api/questions';
import { DECISIONS, label, OUTCOMES, SEVERITIES } from './words';
import css from './tag.module.css';

/** Tag is a small word with a colour. Its tone never says what the word does not. */
export function Tag({ tone = 'info', title, children }: { tone?: string; title?: string; children: ReactNode }) {
  return <span className={css.tag} data-tone={tone} title={title}>{children}</span>;
}

/** Outcome shows a verdict's outcome, explained when pointed at. */
export function Outcome({ of }: { of: string }) {
  const meaning = useConstant('classes').data?.outcomes.find((o) => o.outcome === of)?.text;
  return <Tag tone={(OUTCOMES as readonly string[]).includes(of) ? of : 'none'} title={meaning}>{of ? label(of) : 'no verdict'}</Tag>;
}

/** Decision shows what was decided. */
export function Decision({ of }: { of: string }) {
  return <span className={css.decision} data-decision={of in DECISIONS ? of : 'none'}>{DECISIONS[of] ?? 'no decision'}</span>;
}

/** Severity shows how bad a finding is. */
export function Severity({ of }: { of: string }) {
  return <Tag tone={(SEVERITIES as readonly string[]).includes(of) ? of : 'info'}>{of || 'none'}</Tag>;
}
