package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
)

// rotateFlags say what is to be changed, and which step of it.
//
//	NAME                another client certificate ──▶ apiservers ──▶ NAME --finish: the others are refused
//	--authority         another authority beside the old ──▶ NAME of every cluster ──▶ --authority --finish
//	--server-certificate
type rotateFlags struct {
	authority, server, finish, abort, force, revokeOld bool
	quiet                                              time.Duration
}

func newClusterRotate(s cli.Streams, flags *config.Flags) *cobra.Command {
	var k webhookKubeconfig
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

--finish refuses to while an apiserver still uses what it would cut off. Which files a
kube-apiserver reads again while it runs, and which want a restart: docs/rotate.md.`,
		Example: `  retrial cluster rotate prod --output-dir /etc/kubernetes/retrial
  retrial cluster rotate prod --finish`,
		Args: func(c *cobra.Command, args []string) error {
			if r.authority || r.server {
				return cli.NoArgs(c, args)
			}
			return cli.OneArg("NAME")(c, args)
		},
	}
	k.bind(c)
	c.Flags().BoolVar(&r.authority, "authority", false, "change the authority of all certificates")
	c.Flags().BoolVar(&r.server, "server-certificate", false, "issue another certificate for the webhook's listener")
	c.Flags().BoolVar(&r.finish, "finish", false, "end the overlap: refuse what was in use before")
	c.Flags().BoolVar(&r.abort, "abort", false, "with --authority: give the change up")
	c.Flags().BoolVar(&r.force, "force", false, "with --finish or --abort: do it though apiservers may be cut off")
	c.Flags().DurationVar(&r.quiet, "quiet", 10*time.Minute, "with --finish: for how long the earlier certificates must not have been used")
	c.Flags().BoolVar(&r.revokeOld, "revoke-old", false, "refuse the earlier certificates from now on, without an overlap")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.check(); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		if _, err := loadRegistry(flags); err != nil {
			return err
		}
		cfg, a, err := loadIdentity(flags)
		if err != nil {
			return err
		}
		switch {
		case r.server:
			return r.rotateServer(s, a)
		case r.authority:
			return r.rotateAuthority(s, a, cfg)
		case r.finish:
			if err := a.Registry().Finish(args[0], r.quiet, r.force); err != nil {
				return r.advise(err)
			}
			fmt.Fprintf(s.Err, "cluster %s: only its newest certificate is accepted now\n", args[0])
			return nil
		}
		if err := k.write(s, a, cfg, args[0], func(name string) (identity.Credentials, error) {
			return a.Registry().Rotate(name, r.revokeOld)
		}); err != nil {
			return err
		}
		if !r.revokeOld {
			fmt.Fprintf(s.Err, "the earlier certificates stay accepted; when all its apiservers have the new one: retrial cluster rotate %s --finish\n", args[0])
		}
		return nil
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

// advise adds what --force is for to the refusal of a step.
func (r *rotateFlags) advise(err error) error {
	if errors.Is(err, identity.ErrInUse) {
		return fmt.Errorf("%w\nonce they are changed over, try again; --force does it now, and cuts off who is not", err)
	}
	return err
}

func (r *rotateFlags) rotateServer(s cli.Streams, a *identity.Authority) error {
	if err := a.RenewServer(); err != nil {
		return err
	}
	_, server, err := a.Certificates()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "the receiver's certificate is new, valid until %s; a running server uses it from the next connection on\n", server.NotAfter.Format(time.DateOnly))
	return nil
}

func (r *rotateFlags) rotateAuthority(s cli.Streams, a *identity.Authority, cfg config.Config) error {
	switch {
	case r.abort:
		if err := a.AbortRotation(r.force); err != nil {
			return r.advise(err)
		}
		fmt.Fprintln(s.Err, "given up: the authority is the one before")
		return nil
	case r.finish:
		if err := a.FinishRotation(r.quiet, r.force); err != nil {
			return r.advise(err)
		}
		authority, _, err := a.Certificates()
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "finished: the authority is the new one, valid until %s; the old one and all it signed are refused\n", authority.NotAfter.Format(time.DateOnly))
		return nil
	}
	rotation, err := a.BeginRotation()
	if err != nil {
		return err
	}
	clusters, err := a.Registry().List()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "a new authority, valid until %s, is trusted beside the old one, which ends %s.\nNow give every cluster a webhook configuration with both:\n",
		rotation.New.NotAfter.Format(time.DateOnly), rotation.Old.NotAfter.Format(time.DateOnly))
	for _, c := range clusters {
		if c.Revoked == nil {
			fmt.Fprintf(s.Err, "  retrial cluster rotate %s%s --output %s.kubeconfig\n", c.Name, doctor.Site{Config: cfg}.DataDir(), c.Name)
		}
	}
	fmt.Fprintf(s.Err, "and when all of them use it:\n  retrial cluster rotate --authority --finish%s\n", doctor.Site{Config: cfg}.DataDir())
	return nil
}

// writeFiles writes a webhook configuration with its credentials in files beside it. Each is
// replaced whole, what is named before what names it.
func writeFiles(dir string, files []identity.WebhookFile) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the webhook's files: %w", err)
	}
	for _, f := range files {
		if err := atomicfile.Write(filepath.Join(dir, f.Name), f.Content, f.Mode); err != nil {
			return fmt.Errorf("write the webhook's files: %w", err)
		}
	}
	return nil
}
