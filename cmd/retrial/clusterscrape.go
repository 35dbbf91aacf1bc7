package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/apimetrics"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
)

// cluster scrape: credentials ─▶ one reading of the apiserver's counters ─▶ DATA-DIR/scrape ─▶ the running server
func newClusterScrape(s cli.Streams, flags *config.Flags) *cobra.Command {
	var o scrapeOptions
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
			cfg, err := flags.Load()
			if err != nil {
				return cli.ExitWith(cli.ExitUsage, err)
			}
			return o.run(c.Context(), s, cfg, args[0])
		},
	}
	c.Flags().StringVar(&o.url, "url", "", "URL of the apiserver itself, such as https://10.0.0.1:6443")
	c.Flags().StringVar(&o.apiserver, "apiserver", "", "name it posts under, when the cluster has several (retrial connect --apiserver)")
	c.Flags().StringVar(&o.token, "token-file", "", "file with the account's token; it is copied")
	c.Flags().StringVar(&o.ca, "certificate-authority", "", "file with the authority of the apiserver's certificate; it is copied")
	c.Flags().BoolVar(&o.remove, "remove", false, "do not read it any more")
	return c
}

// scrapeOptions are what the command line says.
type scrapeOptions struct {
	url, apiserver, token, ca string
	remove                    bool
}

func (o *scrapeOptions) run(ctx context.Context, s cli.Streams, cfg config.Config, cluster string) error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	name := cluster
	switch {
	case !identity.ValidName(cluster):
		return usage("%q: %w", cluster, identity.ErrName)
	case o.apiserver != "" && len(validation.IsDNS1123Subdomain(o.apiserver)) > 0:
		return usage("--apiserver %q: write lower case letters, digits, '-' and '.'", o.apiserver)
	case o.apiserver != "":
		name += "/" + o.apiserver
	}
	registry := doctor.ScrapeRegistryOf(cfg)
	if o.remove {
		if o.url+o.token+o.ca != "" {
			return usage("--remove takes no --url, --token-file and --certificate-authority")
		}
		err := registry.Remove(cluster, o.apiserver)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("the counters of %s are not read by what %s says", name, config.Absolute(cfg.DataDir)))
		}
		if err == nil {
			fmt.Fprintf(s.Err, "the counters of %s are not read any more; what was read stays\n", name)
		}
		return err
	}
	if o.url == "" || o.token == "" || o.ca == "" {
		return usage("--url, --token-file and --certificate-authority are all needed")
	}
	t := apimetrics.Target{Cluster: cluster, APIServer: o.apiserver, URL: o.url, TokenFile: o.token, CAFile: o.ca}
	if err := t.Check(); err != nil {
		return usage("--url: %w", err)
	}
	if _, err := os.Stat(cfg.DataDir); err != nil {
		return fmt.Errorf("data directory: %w; name the server's with --data-dir", err)
	}
	reader, err := apimetrics.New(t, nil)
	if err != nil {
		return err
	}
	defer reader.Close()
	got, err := reader.Read(ctx)
	if err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	token, err := os.ReadFile(o.token)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(o.ca)
	if err != nil {
		return err
	}
	if err := registry.Save(cluster, o.apiserver, o.url, token, ca); err != nil {
		return fmt.Errorf("keep what to ask: %w", err)
	}
	fmt.Fprintf(s.Err, "%s made %s since %s; its counters are read from now on (%s)\n", name, phrase.Count(got.Events, "audit event"), got.Started.UTC().Format(time.RFC3339),
		filepath.Join(string(registry), cluster))
	return nil
}
