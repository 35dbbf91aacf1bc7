package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

func newCluster(s cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Manage which clusters may post audit events",
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := config.Bind(c.PersistentFlags())
	showFlags(c.PersistentFlags(), "config", "data-dir", "webhook-listen", "webhook-advertise")
	c.AddCommand(newClusterAdd(s, flags), newClusterList(s, flags), newClusterRotate(s, flags), newClusterRevoke(s, flags),
		newClusterScrape(s, flags))
	return c
}

// onClusters administers the clusters of the configured data directory.
func onClusters(s cli.Streams, flags *config.Flags, do func(server.Clusters) error) error {
	cfg, err := flags.Load()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	return do(server.Clusters{Config: cfg, Streams: s})
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
			return onClusters(s, flags, func(c server.Clusters) error { return c.Add(args[0], k) })
		},
	}
	bindWebhookFile(c, &k)
	c.Flags().BoolVar(&k.Token, "token", false, "put a bearer token in the file in place of the certificate")
	return c
}

// bindWebhookFile adds the flags that say which file add and rotate write.
func bindWebhookFile(c *cobra.Command, k *server.WebhookFile) {
	c.Flags().StringVar(&k.URL, "server", "",
		"URL apiservers reach the receiver by (default: the first advertised name and the listener's port)")
	c.Flags().StringVar(&k.APIServer, "apiserver", "",
		"name of this apiserver, when the cluster has several: events do not say which one sent them")
	c.Flags().StringVarP(&k.Output, "output", "o", "-", "file to write, - for standard output")
	c.Flags().StringVar(&k.Dir, "output-dir", "",
		"folder to write it to, with certificates and key as files beside it, which an apiserver reads again while it runs")
}

func newClusterList(s cli.Streams, flags *config.Flags) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the clusters that may post, and those of which something is stored",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onClusters(s, flags, func(c server.Clusters) error {
				list, err := c.List(cmd.Context())
				if err != nil {
					return err
				}
				return cli.Show(s, output, cli.Kinded{Kind: "ClusterList", Answer: list}, func(p *cli.Page) { printClusters(p, list) })
			})
		},
	}
	cli.AddOutput(c, &output)
	return c
}

func printClusters(p *cli.Page, list []server.Registered) {
	p.Table("CLUSTER\tEVENTS\tNEWEST\tADDED\tCERTIFICATES\tTOKENS\tEXPIRES\tUSED\tSTATE")
	for _, c := range list {
		p.Named(c.Name)
		state, expires, used, newest := "accepted", "-", "-", "-"
		if c.Last != nil {
			newest = c.Last.UTC().Format(time.RFC3339)
		}
		if c.Added.IsZero() {
			p.Printf("%s\t%d\t%s\t-\t-\t-\t-\t-\tnot registered\n", c.Name, c.Events, newest)
			continue
		}
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
		p.Printf("%s\t%d\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Name, c.Events, newest, c.Added.Format(time.DateOnly), c.Certificates,
			c.Tokens, expires, used, state)
	}
}

func newClusterRevoke(s cli.Streams, flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:               "revoke NAME",
		Short:             "Refuse everything the cluster posts from now on, open connections included",
		ValidArgsFunction: completingClusters(flags),
		Args:              cli.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			return onClusters(s, flags, func(c server.Clusters) error {
				if err := c.Revoke(args[0]); err != nil {
					return err
				}
				fmt.Fprintf(s.Err, "cluster %s is revoked; what it sent before stays\n", args[0])
				return nil
			})
		},
	}
}

// cluster scrape: credentials ─▶ one reading of the apiserver's counters ─▶ DATA-DIR/scrape ─▶ the running server
func newClusterScrape(s cli.Streams, flags *config.Flags) *cobra.Command {
	var o server.Counters
	c := &cobra.Command{
		Use:   "scrape NAME",
		Short: "Have the server read an apiserver's counters, which say how many events it sent",
		Long: `Read the counters of a kube-apiserver once and, when that succeeds, have the server read them
from now on. They alone say how many audit events were sent, so that completeness and doctor
can tell how many are missing and why. A running server begins within half a minute.

The account needs get of the path /metrics, which metrics-rbac.yaml of retrial connect grants.
Name the apiserver's own address, never that of a load balancer: each has counters of its own.
Do it again with another token before the old one expires.`,
		Example: `  retrial cluster scrape prod --url https://10.0.0.1:6443 --token-file metrics.token --certificate-authority metrics-ca.crt
  retrial cluster scrape prod --apiserver cp-2 --remove`,
		ValidArgsFunction: completingClusters(flags),
		Args:              cli.OneArg("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return onClusters(s, flags, func(clusters server.Clusters) error { return clusters.Scrape(c.Context(), args[0], o) })
		},
	}
	c.Flags().StringVar(&o.URL, "url", "", "URL of the apiserver itself, such as https://10.0.0.1:6443")
	c.Flags().StringVar(&o.APIServer, "apiserver", "", "name it posts under, when the cluster has several (retrial connect --apiserver)")
	c.Flags().StringVar(&o.TokenFile, "token-file", "", "file with the account's token; it is copied")
	c.Flags().StringVar(&o.CAFile, "certificate-authority", "", "file with the authority of the apiserver's certificate; it is copied")
	c.Flags().BoolVar(&o.Remove, "remove", false, "do not read it any more")
	return c
}
