import { Card, Empty, Question } from '../../kit/Card';
import { Copy } from '../../kit/Copy';
import { Page } from '../../kit/Page';
import { useScope } from '../../kit/scope';
import { command } from '../../kit/shell';
import { Accesses } from './Accesses';
import { Beyond } from './Beyond';
import { Form } from './Form';
import { useAsking, useDrafted, type Asking } from './queries';
import { Summary } from './Summary';
import { placeOf } from './words';

/** WhatIf answers: what would this change of roles and bindings break? */
export default function WhatIf() {
  const asking = useAsking();
  const asks = useDrafted(asking);
  const asked = (asking.draft?.length ?? 0) + asking.deletes.length > 0 && asking.draft !== null;
  const files = asking.draft?.map((s) => s.name) ?? [];
  // What is wrong with the change is told where it is written.
  const told = asks.error !== null && placeOf(asks.error.status, asks.error.message, files, asking.deletes).at !== 'none';
  return (
    <Page title="What if" lead="What would a change of roles and bindings break? Asked of what was recorded, before anybody applies it.">
      <Card title="The change"><Form asking={asking} failure={asks.error} again={() => void asks.refetch()} /></Card>
      {!asked ? (
        <Card title="What it would break"><Empty>Draft a change, and ask: accesses that were used and would be refused come first. Those that were refused and would be allowed, what becomes possible, and who could then become cluster administrator follow.</Empty></Card>
      ) : told ? null : (
        <>
          <Card title="What it would break" actions={<Same asking={asking} />}>
            <Question asks={asks} lines={6}>{(a) => <Summary of={a} />}</Question>
          </Card>
          {asks.data && !asks.error && <><Accesses of={asks.data} /><Beyond of={asks.data} /></>}
        </>
      )}
    </Page>
  );
}

/** Same asks the same on a command line, of the files where they are. */
function Same({ asking: { deletes, subject, draft } }: { asking: Asking }) {
  const { cluster, range, from, to } = useScope();
  const flags: [string, string][] = [
    ['--cluster', cluster],
    ...(draft ?? []).map((s): [string, string] => ['-f', s.name]),
    ...deletes.map((o): [string, string] => ['--delete', o]),
    ...(subject ? [['--subject', subject] as [string, string]] : []),
    ...(range.name === 'all' ? [] : [['--from', from], ['--to', to]] as [string, string][]),
  ];
  return <Copy text={command('retrial', 'whatif', ...flags.flat())} what="as command" />;
}
