package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/apimetrics"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
)

// Counters name an apiserver whose counters the server is to read.
type Counters struct {
	URL, APIServer    string
	TokenFile, CAFile string // are copied
	Remove            bool   // they are not to be read any more
}

// Scrape reads an apiserver's counters once and has the server read them from then on.
func (c Clusters) Scrape(ctx context.Context, cluster string, o Counters) error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	name := cluster
	switch {
	case !identity.ValidName(cluster):
		return usage("%q: %w", cluster, identity.ErrName)
	case o.APIServer != "" && len(validation.IsDNS1123Subdomain(o.APIServer)) > 0:
		return usage("--apiserver %q: write lower case letters, digits, '-' and '.'", o.APIServer)
	case o.APIServer != "":
		name += "/" + o.APIServer
	}
	registry := doctor.ScrapeRegistryOf(c.Config)
	if o.Remove {
		if o.URL+o.TokenFile+o.CAFile != "" {
			return usage("--remove takes no --url, --token-file and --certificate-authority")
		}
		err := registry.Remove(cluster, o.APIServer)
		if errors.Is(err, os.ErrNotExist) {
			return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("the counters of %s are not read by what %s says", name, config.Absolute(c.Config.DataDir)))
		}
		if err == nil {
			fmt.Fprintf(c.Streams.Err, "the counters of %s are not read any more; what was read stays\n", name)
		}
		return err
	}
	if o.URL == "" || o.TokenFile == "" || o.CAFile == "" {
		return usage("--url, --token-file and --certificate-authority are all needed")
	}
	t := apimetrics.Target{Cluster: cluster, APIServer: o.APIServer, URL: o.URL, TokenFile: o.TokenFile, CAFile: o.CAFile}
	if err := t.Check(); err != nil {
		return usage("--url: %w", err)
	}
	if _, err := os.Stat(c.Config.DataDir); err != nil {
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
	token, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(o.CAFile)
	if err != nil {
		return err
	}
	if err := registry.Save(cluster, o.APIServer, o.URL, token, ca); err != nil {
		return fmt.Errorf("keep what to ask: %w", err)
	}
	fmt.Fprintf(c.Streams.Err, "%s made %s since %s; its counters are read from now on (%s)\n", name, phrase.Count(got.Events, "audit event"), got.Started.UTC().Format(time.RFC3339),
		filepath.Join(string(registry), cluster))
	return nil
}
