// Command retrial gives every Kubernetes API request a second trial: it takes audit events, re-evaluates each through a replica of the
// apiserver's authentication, authorization and admission as they stood at that moment, and keeps events, verdicts and grants for analysis.
// One file a command; the drawing of what serve wires stands in package server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(executeAs(ctx, os.Args[0], os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, s cli.Streams) int {
	return executeAs(ctx, "retrial", args, s)
}

// executeAs is execute of a program that was called by a name.
func executeAs(ctx context.Context, program string, args []string, s cli.Streams) int {
	root := newRoot(s)
	if isPlugin(program) {
		asPlugin(root)
	}
	return cli.Run(ctx, root, args, s)
}

func newRoot(s cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "retrial",
		Short: "Know what was done on Kubernetes clusters, what made it possible, and which rights nobody needs",
		Long: `Retrial re-evaluates every recorded Kubernetes API request as of its own moment and keeps
the event, the verdict and every grant that made it possible.

  retrial serve                      receive audit webhooks, replay, store, show
  retrial ingest, retrial replay     the two halves of serve, to scale out
  retrial connect NAME               write what an apiserver needs, and watch it arrive
  retrial import --cluster NAME LOG  take in a recorded audit log
  retrial why AUDIT-ID               explain one request
  retrial explain-deny AUDIT-ID      say what a refused request lacked
  retrial who-can VERB RESOURCE      who could do it, and by which binding
  retrial can SUBJECT                what a subject could do
  retrial escalations                who can make itself cluster administrator, and how
  retrial hygiene                    what is idle, dangling or open to everybody
  retrial dangers                    who holds what is dangerous, and does not use it
  retrial refusals --since TIME      what was refused, and why
  retrial policy-changes --since TIME
                                     who wrote roles and bindings, and what came of it
  retrial first-uses --since TIME    what was done for the first time
  retrial findings                   what is odd
  retrial events --where CONDITION   requests with their verdicts, by any column
  retrial tail                       requests with their verdicts, as they are judged
  retrial drift                      what does not agree, by likely cause
  retrial lineage CREDENTIAL|SUBJECT follow a credential from its issue to every use
  retrial completeness               what apiservers sent, and what of it is missing
  retrial rejudge --since TIME       judge again what is stored
  retrial config check DIR           what is understood of an apiserver's configuration
  retrial partitions                 how clusters are spread over processes; add partitions
  retrial suggest                    the least roles each subject needs, with a proof
  retrial whatif -f DRAFT            what a draft of roles and bindings would refuse and allow
  retrial evaluate --state S --events LOG
                                     replay offline, without Kafka or ClickHouse`,
		Args:    cli.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Version: version.Version,
	}
	s = s.WithLook(root)
	root.AddCommand(
		newServe(s), newIngest(s), newReplay(s), newImport(s), newEvaluate(s), newSuggest(s), newWhatIf(s), newFindings(s), newWhy(s),
		newWhoCan(s),
		newCan(s), newChanges(s), newEscalations(s), newHygiene(s), newExplainDeny(s), newDrift(s), newLineage(s), newCompleteness(s),
		newRefusals(s), newPolicyChanges(s), newFirstUses(s), newDangers(s),
		newAsk(s), newEvents(s), newTail(s), newRejudge(s), newQueryLogCommand(s), newCluster(s), newConfig(s), newConnect(s), newDoctor(s),
		newBench(s), newPartitions(s), newVersion(s), cli.NewTimes(), cli.NewMan(version.Version))
	return root
}
