import { Grid, Question } from '../../kit/Card';
import { useLinks } from '../../kit/address';
import { Figures } from '../../kit/Figures';
import { Page } from '../../kit/Page';
import { useKnown } from '../../kit/scope';
import { count, percent, plural } from '../../kit/words';
import { Arrived } from './Arrived';
import { Disagreements } from './Disagreements';
import { Connection, Doctor, Jobs } from './Health';
import { useCompleteness, useOverview } from './queries';
import { Classes, Coverage, Decisions, Meanings } from './Verdicts';

/** Trust answers: how far can I rely on what the other pages say? */
export default function Trust() {
  return (
    <Page title="Trust" lead="How far the other pages can be relied on: what arrived, how much of it was decided again, and where the replay disagrees with the apiserver.">
      <Summary />
      <Connection />
      <Grid columns="minmax(0, 1fr) minmax(0, 1fr)">
        <Coverage />
        <Grid columns="minmax(0, 1fr)">
          <Arrived />
          <Doctor />
        </Grid>
      </Grid>
      <Disagreements />
      <Grid columns="minmax(0, 3fr) minmax(0, 2fr)">
        <Classes />
        <Decisions />
      </Grid>
      <Jobs />
      <Meanings />
    </Page>
  );
}

function Summary() {
  const { to } = useLinks();
  const { status } = useKnown();
  const overview = useOverview();
  const complete = useCompleteness();
  const measured = complete.data?.apiservers.flatMap((s) => s.measured ?? []) ?? [];
  const missing = measured.reduce((n, m) => n + m.missing, 0);
  const unread = measured.reduce((n, m) => n + m.deadLetters, 0) + (status?.deadLetterLag ?? 0);
  return (
    <Question asks={overview} lines={2}>
      {({ totals: t }) => (
        <Figures list={[
          { label: 'Requests', value: count(t.requests), note: plural(t.events, 'audit event'), href: to('/explore') },
          { label: 'Agreement', value: percent(t.match, t.match + t.drift), note: `${count(t.match)} of ${count(t.match + t.drift)} certain answers`, href: to('/explore', { outcome: 'match' }), tone: t.match && !t.drift ? 'good' : undefined },
          { label: 'Drift', value: count(t.drift), note: t.drift ? 'the replay disagrees' : 'replay and apiserver agree', href: to('/explore', { outcome: 'drift' }), tone: t.drift ? 'bad' : undefined },
          { label: 'Decided again', value: percent(t.match + t.drift + t.ambiguous, t.requests), note: `of ${plural(t.requests, 'request')}`, href: to('/explore', { outcome: 'indeterminate' }) },
          { label: 'Missing events', value: measured.length ? count(missing) : '–', note: measured.length ? `of ${count(measured.reduce((n, m) => n + m.sent, 0))} sent` : 'not measured', tone: missing ? 'bad' : undefined },
          { label: 'Lag', value: status ? count(status.lag) : '–', note: status?.policyLag ? `events, and ${plural(status.policyLag, 'policy record')}` : 'events await their verdict', tone: status?.lag ? 'warn' : undefined },
          { label: 'Dead letters', value: count(unread), note: 'arrived and could not be read', tone: unread ? 'bad' : undefined },
        ]} />
      )}
    </Question>
  );
}
