package main

import (
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/server"
)

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
		Args: cli.OneArg("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			clusters, err := clustersOf(s, flags)
			if err != nil {
				return err
			}
			return clusters.Scrape(c.Context(), args[0], o)
		},
	}
	c.Flags().StringVar(&o.URL, "url", "", "URL of the apiserver itself, such as https://10.0.0.1:6443")
	c.Flags().StringVar(&o.APIServer, "apiserver", "", "name it posts under, when the cluster has several (retrial connect --apiserver)")
	c.Flags().StringVar(&o.TokenFile, "token-file", "", "file with the account's token; it is copied")
	c.Flags().StringVar(&o.CAFile, "certificate-authority", "", "file with the authority of the apiserver's certificate; it is copied")
	c.Flags().BoolVar(&o.Remove, "remove", false, "do not read it any more")
	return c
}
