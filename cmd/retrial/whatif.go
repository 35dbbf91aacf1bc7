package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/cmd/retrial/review"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
)

type whatIfOptions struct {
	asker
	query.WhatIfRequest
	files, failOn []string
}

// -f FILE… ─▶ api/v1/whatif of the server, the store or a log (see asker) ─▶ table | json | yaml | markdown | sarif
func newWhatIf(s cli.Streams) *cobra.Command {
	var o whatIfOptions
	c := &cobra.Command{
		Use:   "whatif -f FILE|-... [--delete KIND/[NAMESPACE/]NAME]... [--since 90d]",
		Short: "Say what a draft of roles and bindings would refuse and allow",
		Long: `Ask the requests on record about a draft of Roles, ClusterRoles, RoleBindings and
ClusterRoleBindings before it is applied: which accesses of whom it would refuse, how often they were
asked for and when last; which refused ones it would allow; and for whom it opens or closes a way to
cluster administrator. Nothing is applied. docs/whatif.md has the rules.

A draft is what would be given to kubectl apply, as YAML or JSON: objects it does not name stay as they
are. Every access is asked of the authorizers of the apiserver, once by the newest policy that is known
and once by that policy with the draft.

The running server is asked; with none running the command reads the store itself. With --events and
--state neither is needed: the log is replayed here.

-o markdown is a comment for a pull request, -o sarif is SARIF 2.1.0 with file and line of the object
that is the cause. --fail-on ends with exit code 3, after the result is printed, when an access would be
refused (revoked) or allowed (gained), when one may be or a webhook decides (maybe), or when a way to
cluster administrator would be opened (escalation).`,
		Example: `  retrial whatif -f rbac/ci.yaml --since 90d
  retrial whatif -f draft.yaml --delete ClusterRoleBinding/old-admins --fail-on revoked,escalation
  helm template . | retrial whatif -f - -o markdown > comment.md
  retrial whatif -f draft.yaml --state state.json --events audit.log -o sarif > whatif.sarif`,
		Args: cli.NoArgsBut("drafts are named with -f"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bindServer(c, s)
	o.bindLog(c)
	cli.BindRequest(c, &o.WhatIfRequest, "cluster", "delete", "subject", "from", "to")
	o.completeFlags(c)
	c.Flags().Lookup("apiserver-config").Hidden = false
	c.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file of the draft, - for standard input; may be repeated")
	c.Flags().StringSliceVar(&o.failOn, "fail-on", nil,
		"exit with 3 if there is any of these, separated by commas: "+strings.Join(review.Conditions(), ", "))
	cli.AddOutput(c, &o.output, append(cli.AnswerForms(), "markdown", "sarif")...)
	return c
}

// check returns an error for flags that make no sense, before anything is read.
func (o *whatIfOptions) check() error {
	if len(o.files)+len(o.Delete) == 0 {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("nothing is drafted: name a file with -f, or an object with --delete"))
	}
	for _, on := range o.failOn {
		if !slices.Contains(review.Conditions(), on) {
			return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --fail-on %q: want %s%s", on, strings.Join(review.Conditions(), ", "),
				didYouMean(query.Nearest(on, review.Conditions(), 1))))
		}
	}
	for i, name := range o.Subjects {
		user, err := cli.User("--subject", name)
		if err != nil {
			return err
		}
		o.Subjects[i] = user
	}
	return nil
}

func (o *whatIfOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	var err error
	if o.Draft, err = review.Read(o.files, o.In); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	answer, err := answerOne(ctx, &o.asker, &o.Cluster, &o.WhatIfRequest)
	if err != nil {
		return err
	}
	switch o.output {
	case "markdown":
		err = review.Markdown(o.Out, &answer)
	case "sarif":
		err = review.SARIF(o.Out, &answer, version.Version)
	default:
		err = o.show(answer, func(p *cli.Page) {
			review.Table(p, &answer)
			if n := len(answer.Possible) + answer.MorePossible; n > 0 && !p.Flat() {
				p.Table("")
				p.Printf("\nWhat becomes possible (+) and impossible (-) for %s, whether or not anybody asked for it:\n",
					phrase.Number(n, "subject"))
				printChanged(p, &query.ChangesAnswer{Subjects: answer.Possible})
			}
		})
	}
	if failing := review.Failing(&answer, o.failOn); err == nil && len(failing) > 0 {
		err = cli.ExitWith(cli.ExitFinding, fmt.Errorf("%s", strings.Join(failing, ", ")))
	}
	return err
}
