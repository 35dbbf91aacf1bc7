package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

// rotateFlags says what to change, and which step of it.
//
//	NAME                another client certificate ──▶ apiservers ──▶ NAME --finish: the others are refused
//	--authority         another authority beside the old ──▶ NAME of every cluster ──▶ --authority --finish
//	--server-certificate
type rotateFlags struct {
	authority, server, finish, abort, force, revokeOld bool
	quiet                                              time.Duration
}

func newClusterRotate(s cli.Streams, flags *config.Flags) *cobra.Command {
	var k server.WebhookFile
	var r rotateFlags
	c := &cobra.Command{
		Use:   "rotate [NAME | --authority | --server-certificate]",
		Short: "Change a cluster's certificate, the authority or the server's certificate, without losing an event",
		Long: `Change certificates while events arrive. Both the old and the new are accepted until --finish.

  retrial cluster rotate NAME              another client certificate, and the webhook configuration with it
  retrial cluster rotate NAME --finish     refuse the earlier ones, once the new one is in use and they are not
  retrial cluster rotate --authority       another authority beside the old one; then rotate every cluster
  retrial cluster rotate --authority --finish
                                           change the server's certificate over, and trust the old authority no more
  retrial cluster rotate --server-certificate
                                           another certificate of the same authority; the running server has it at once

--finish declines while an apiserver still uses what it would cut off. Which files a
kube-apiserver reads again while it runs, and which want a restart: docs/rotate.md.`,
		Example: `  retrial cluster rotate prod --output-dir /etc/kubernetes/retrial
  retrial cluster rotate prod --finish`,
		ValidArgsFunction: completingClusters(flags),
		Args: func(c *cobra.Command, args []string) error {
			if r.authority || r.server {
				return cli.NoArgs(c, args)
			}
			return cli.OneArg("NAME")(c, args)
		},
	}
	bindWebhookFile(c, &k)
	c.Flags().BoolVar(&r.authority, "authority", false, "change the authority of all certificates")
	c.Flags().BoolVar(&r.server, "server-certificate", false, "issue another certificate for the webhook's listener")
	c.Flags().BoolVar(&r.finish, "finish", false, "end the overlap: refuse what was in use before")
	c.Flags().BoolVar(&r.abort, "abort", false, "with --authority: give the change up")
	c.Flags().BoolVar(&r.force, "force", false, "with --finish or --abort: do it though apiservers may be cut off")
	cli.DurationVar(c, &r.quiet, "quiet", 10*time.Minute, "with --finish: for how long the earlier certificates must not have been used")
	c.Flags().BoolVar(&r.revokeOld, "revoke-old", false, "refuse the earlier certificates from now on, without an overlap")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.check(); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		return onClusters(s, flags, func(c server.Clusters) error {
			switch {
			case r.server:
				return c.RenewServer()
			case r.authority && r.abort:
				return c.AbortAuthority(r.force)
			case r.authority && r.finish:
				return c.FinishAuthority(r.quiet, r.force)
			case r.authority:
				return c.RotateAuthority()
			case r.finish:
				return c.Finish(args[0], r.quiet, r.force)
			}
			return c.Rotate(args[0], k, r.revokeOld)
		})
	}
	return c
}

func (r *rotateFlags) check() error {
	switch {
	case r.authority && r.server:
		return errors.New("--authority and --server-certificate are two changes: the first does the second in its end")
	case r.server && (r.finish || r.abort):
		return errors.New("--server-certificate has one step")
	case r.abort && !r.authority:
		return errors.New("--abort gives up a change of --authority; a cluster's certificate: retrial cluster rotate NAME issues another")
	case r.finish && r.abort:
		return errors.New("either --finish or --abort")
	case r.finish && r.revokeOld:
		return errors.New("--finish revokes what --revoke-old would")
	case r.revokeOld && (r.authority || r.server):
		return errors.New("--revoke-old is of one cluster's certificates: retrial cluster rotate NAME --revoke-old")
	case r.force && !r.finish && !r.abort:
		return errors.New("--force is for --finish and --abort: nothing else cuts anybody off")
	case r.quiet < 0:
		return errors.New("--quiet must not be negative")
	}
	return nil
}
