package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

func newCluster(s cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Say which clusters may post audit events",
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := config.Bind(c.PersistentFlags())
	showFlags(c.PersistentFlags(), "config", "data-dir", "webhook-listen", "webhook-advertise")
	c.AddCommand(newClusterAdd(s, flags), newClusterList(s, flags), newClusterRotate(s, flags), newClusterRevoke(s, flags), newClusterScrape(s, flags))
	return c
}

// clustersOf loads the configuration of the data directory whose clusters are looked after.
func clustersOf(s cli.Streams, flags *config.Flags) (server.Clusters, error) {
	cfg, err := flags.Load()
	if err != nil {
		return server.Clusters{}, cli.ExitWith(cli.ExitUsage, err)
	}
	return server.Clusters{Config: cfg, Streams: s}, nil
}

func newClusterAdd(s cli.Streams, flags *config.Flags) *cobra.Command {
	var k server.WebhookFile
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Register a cluster and write the kubeconfig for its apiservers' --audit-webhook-config-file",
		Long: `Register a cluster. It gets a client certificate that may post for this cluster and no
other, and the kubeconfig that kube-apiserver's --audit-webhook-config-file wants is written
to --output (default: standard output). It is as secret as the key in it.

A running server accepts the certificate at once.`,
		Example: "  retrial cluster add prod --server https://retrial.example:9443 --output webhook.kubeconfig",
		Args:    cli.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			clusters, err := clustersOf(s, flags)
			if err != nil {
				return err
			}
			return clusters.Add(args[0], k)
		},
	}
	bindWebhookFile(c, &k)
	c.Flags().BoolVar(&k.Token, "token", false, "put a bearer token in the file in place of the certificate")
	return c
}

// bindWebhookFile adds the flags that say which file add and rotate write.
func bindWebhookFile(c *cobra.Command, k *server.WebhookFile) {
	c.Flags().StringVar(&k.URL, "server", "", "URL apiservers reach the receiver by (default: the first advertised name and the listener's port)")
	c.Flags().StringVar(&k.APIServer, "apiserver", "", "name of this apiserver, when the cluster has several: events do not say which one sent them")
	c.Flags().StringVarP(&k.Output, "output", "o", "-", "file to write, - for standard output")
	c.Flags().StringVar(&k.Dir, "output-dir", "", "folder to write it to, with certificates and key as files beside it, which an apiserver reads again while it runs")
}

func newClusterList(s cli.Streams, flags *config.Flags) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the registered clusters",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			clusters, err := clustersOf(s, flags)
			if err != nil {
				return err
			}
			list, err := clusters.List()
			if err != nil {
				return err
			}
			if output != "table" {
				return cli.PrintAs(s.Out, output, list)
			}
			return printClusters(s.Out, list)
		},
	}
	cli.AddOutput(c, &output, "table", "json", "yaml")
	return c
}

func printClusters(out io.Writer, list []server.Registered) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tADDED\tCERTIFICATES\tTOKENS\tEXPIRES\tUSED\tSTATE")
	for _, c := range list {
		state, expires, used := "accepted", "-", "-"
		if c.Overlap {
			state = "accepted, earlier certificates too"
		}
		if c.Used != nil {
			used = c.Used.UTC().Format(time.RFC3339)
		}
		if c.Revoked != nil {
			state = "revoked " + c.Revoked.Format(time.DateOnly)
		}
		if c.Expires != nil {
			expires = c.Expires.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Name, c.Added.Format(time.DateOnly), c.Certificates, c.Tokens, expires, used, state)
	}
	return w.Flush()
}

func newClusterRevoke(s cli.Streams, flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Refuse everything the cluster posts from now on, open connections included",
		Args:  cli.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			clusters, err := clustersOf(s, flags)
			if err != nil {
				return err
			}
			if err := clusters.Revoke(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(s.Err, "cluster %s is revoked; what it sent before stays\n", args[0])
			return nil
		},
	}
}
