package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/config"
)

func newCluster(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Say which clusters may post audit events",
		Args:  usage(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := config.Bind(c.PersistentFlags())
	c.AddCommand(newClusterAdd(s, flags), newClusterList(s, flags), newClusterRotate(s, flags), newClusterRevoke(s, flags))
	return c
}

// loadIdentity loads the configuration and opens its certificates and registry.
func loadIdentity(flags *config.Flags) (config.Config, *identity.Authority, error) {
	cfg, err := flags.Load()
	if err != nil {
		return cfg, nil, exitCode{exitUsage, err}
	}
	a, err := openIdentity(cfg)
	return cfg, a, err
}

// openIdentity opens the certificates and the registry of the configured data directory.
func openIdentity(cfg config.Config) (*identity.Authority, error) {
	return identity.Open(identityConfig(cfg), nil, nil)
}

func identityConfig(cfg config.Config) identity.Config {
	return identity.Config{Dir: filepath.Join(cfg.DataDir, "pki"), Names: cfg.Webhook.Advertise, TokenFile: cfg.Webhook.TokenFile}
}

// receiverURL is where apiservers reach the receiver: the first advertised name, else the
// listener's own address.
func receiverURL(cfg config.Config) string {
	host, port, err := net.SplitHostPort(cfg.Webhook.Listen)
	if err != nil {
		return "https://" + cfg.Webhook.Listen
	}
	if len(cfg.Webhook.Advertise) > 0 {
		host = cfg.Webhook.Advertise[0]
	}
	return "https://" + net.JoinHostPort(host, port)
}

func newClusterAdd(s streams, flags *config.Flags) *cobra.Command {
	var k webhookKubeconfig
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Register a cluster and write the kubeconfig for its apiservers' --audit-webhook-config-file",
		Long: `Register a cluster. It gets a client certificate that may post for this cluster and no
other, and the kubeconfig that kube-apiserver's --audit-webhook-config-file wants is written
to --output (default: standard output). It is as secret as the key in it.

A running server accepts the certificate at once.`,
		Example: "  retrial cluster add prod --server https://retrial.example:9443 --output webhook.kubeconfig",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, a, err := loadIdentity(flags)
			if err != nil {
				return err
			}
			cred, err := a.Registry().Add(args[0])
			if err != nil {
				return err
			}
			return k.write(s, a, cfg, cred)
		},
	}
	k.bind(c)
	c.Flags().BoolVar(&k.token, "token", false, "put a bearer token in the file in place of the certificate")
	return c
}

// webhookKubeconfig is the file for --audit-webhook-config-file that add and rotate write.
type webhookKubeconfig struct {
	server, apiserver, out string
	token                  bool
}

func (k *webhookKubeconfig) bind(c *cobra.Command) {
	c.Flags().StringVar(&k.server, "server", "", "URL apiservers reach the receiver by (default: the first advertised name and the listener's port)")
	c.Flags().StringVar(&k.apiserver, "apiserver", "", "name of this apiserver, when the cluster has several: events do not say which one sent them")
	c.Flags().StringVarP(&k.out, "output", "o", "-", "file to write, - for standard output")
}

func (k *webhookKubeconfig) write(s streams, a *identity.Authority, cfg config.Config, cred identity.Credentials) error {
	server := k.server
	if server == "" {
		server = receiverURL(cfg)
	}
	var token string
	if k.token {
		var err error
		if token, err = a.Registry().NewToken(cred.Cluster); err != nil {
			return err
		}
	}
	file, err := identity.WebhookConfig(server, k.apiserver, cred, token)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "cluster %s may post to %s; its certificate is valid until %s\n", cred.Cluster, server, cred.Expires.Format(time.DateOnly))
	if k.out == "-" {
		_, err = s.out.Write(file)
		return err
	}
	if err := os.WriteFile(k.out, file, 0o600); err != nil {
		return fmt.Errorf("write the webhook's kubeconfig: %w", err)
	}
	fmt.Fprintf(s.err, "wrote %s; give kube-apiserver --audit-webhook-config-file=%s and an --audit-policy-file\n", k.out, k.out)
	return nil
}

func newClusterList(s streams, flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the registered clusters",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, a, err := loadIdentity(flags)
			if err != nil {
				return err
			}
			clusters, err := a.Registry().List()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "CLUSTER\tADDED\tCERTIFICATES\tTOKENS\tEXPIRES\tSTATE")
			for _, c := range clusters {
				state, expires := "accepted", "-"
				if c.Revoked != nil {
					state = "revoked " + c.Revoked.Format(time.DateOnly)
				}
				if n := len(c.Certificates); n > 0 {
					expires = c.Certificates[n-1].Expires.Format(time.DateOnly)
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", c.Name, c.Created.Format(time.DateOnly), len(c.Certificates), len(c.Tokens), expires, state)
			}
			return w.Flush()
		},
	}
}

func newClusterRotate(s streams, flags *config.Flags) *cobra.Command {
	var k webhookKubeconfig
	var revokeOld bool
	c := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Issue another client certificate; earlier ones stay accepted until they expire",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, a, err := loadIdentity(flags)
			if err != nil {
				return err
			}
			cred, err := a.Registry().Rotate(args[0], revokeOld)
			if err != nil {
				return err
			}
			return k.write(s, a, cfg, cred)
		},
	}
	k.bind(c)
	c.Flags().BoolVar(&revokeOld, "revoke-old", false, "refuse the earlier certificates from now on")
	return c
}

func newClusterRevoke(s streams, flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Refuse everything the cluster posts from now on, open connections included",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, a, err := loadIdentity(flags)
			if err != nil {
				return err
			}
			if err := a.Registry().Revoke(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(s.err, "cluster %s is revoked; what it sent before stays\n", args[0])
			return nil
		},
	}
}
