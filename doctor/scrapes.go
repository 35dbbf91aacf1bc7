package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/apimetrics"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
)

// ScrapeRegistry is the folder of the data directory that lists the apiservers whose counters are
// scraped, in addition to those that the configuration names. A running server reads it before each
// scrape:
//
//	DATA-DIR/scrape/CLUSTER/APISERVER/target.yaml, token, ca.crt
//
// It holds the names of files, never a token, in memory: a reader reads them again when they
// change.
type ScrapeRegistry string

// ScrapeRegistryOf returns the apiservers of an installation whose metrics are read.
func ScrapeRegistryOf(cfg config.Config) ScrapeRegistry {
	return ScrapeRegistry(filepath.Join(cfg.DataDir, "scrape"))
}

const (
	// ScrapeTarget is the file that names an apiserver's address.
	ScrapeTarget = "target.yaml"

	scrapeToken, scrapeCA = "token", "ca.crt"
	// onlyAPIServer stands for an apiserver without a name, which no apiserver can have.
	onlyAPIServer = "_"
)

// scrapeEntry is the content of target.yaml.
type scrapeEntry struct {
	URL string `json:"url"`
}

// folder is that of one apiserver.
func (r ScrapeRegistry) folder(cluster, apiserver string) string {
	return filepath.Join(string(r), cluster, cmp.Or(apiserver, onlyAPIServer))
}

// Save registers an apiserver to be scraped, or changes how. The target is written last: without it
// the apiserver is not scraped.
func (r ScrapeRegistry) Save(cluster, apiserver, url string, token, ca []byte) error {
	text, err := yaml.Marshal(scrapeEntry{url})
	if err != nil {
		return err
	}
	dir := r.folder(cluster, apiserver)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{scrapeToken, token}, {scrapeCA, ca}, {ScrapeTarget, text}} {
		if err := atomicfile.Write(filepath.Join(dir, f.name), f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Remove forgets an apiserver; fs.ErrNotExist means that it was not registered.
func (r ScrapeRegistry) Remove(cluster, apiserver string) error {
	dir := r.folder(cluster, apiserver)
	if err := os.Remove(filepath.Join(dir, ScrapeTarget)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// targets lists the apiservers to scrape. Entries that cannot be read are reported, and the others
// are scraped.
func (r ScrapeRegistry) targets() ([]apimetrics.Target, error) {
	files, err := filepath.Glob(filepath.Join(string(r), "*", "*", ScrapeTarget))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []apimetrics.Target
	var errs []error
	for _, file := range files {
		dir := filepath.Dir(file)
		apiserver, cluster := filepath.Base(dir), filepath.Base(filepath.Dir(dir))
		if apiserver == onlyAPIServer {
			apiserver = ""
		}
		var entry scrapeEntry
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed a moment ago
		}
		if err == nil {
			err = yaml.UnmarshalStrict(text, &entry)
		}
		t := apimetrics.Target{Cluster: cluster, APIServer: apiserver, URL: entry.URL, TokenFile: filepath.Join(dir, scrapeToken),
			CAFile: filepath.Join(dir, scrapeCA)}
		if err == nil {
			err = t.Check()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// AllTargets are the apiservers to ask: of the configuration, then of the data directory. The
// configuration counts where both name one.
func AllTargets(cfg config.Config) ([]apimetrics.Target, error) {
	out, err := ScrapeTargets(cfg.Completeness)
	if err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	more, err := ScrapeRegistryOf(cfg).targets()
	for _, t := range more {
		if !slices.ContainsFunc(out, func(o apimetrics.Target) bool { return o.Cluster == t.Cluster && o.APIServer == t.APIServer }) {
			out = append(out, t)
		}
	}
	return out, err
}

// Scraped names the apiservers of a cluster whose metrics are scraped.
func (s Site) Scraped(cluster string) (names []string) {
	targets, _ := AllTargets(s.Config) // the server reports what is wrong when it scrapes
	for _, t := range targets {
		if t.Cluster == cluster {
			names = append(names, t.APIServer)
		}
	}
	return names
}

// scrapeCommands returns how to register an apiserver for scraping, besides the manifest.
func (s Site) scrapeCommands(cluster, apiserver string) []string {
	name := phrase.ShellWord(cluster)
	if apiserver != "" {
		name += " --apiserver " + phrase.ShellWord(apiserver)
	}
	return []string{
		"kubectl apply -f " + FileMetrics,
		"(umask 077; kubectl -n retrial create token retrial-metrics --duration 8760h > metrics.token)",
		`kubectl -n retrial get configmap kube-root-ca.crt -o jsonpath='{.data.ca\.crt}' > metrics-ca.crt`,
		"retrial cluster scrape " + name + " --url https://ADDRESS:6443 --token-file metrics.token --certificate-authority metrics-ca.crt" +
			s.DataDir(),
	}
}

// ScrapeTargets returns the apiservers the configuration names. A cluster's settings apply to all of them, an apiserver's to it alone.
func ScrapeTargets(c config.Completeness) ([]apimetrics.Target, error) {
	var out []apimetrics.Target
	for _, entry := range c.Scrape {
		cluster, server, address, err := config.ApiserverEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("completeness-scrape: %w", err)
		}
		file := func(entries []string) (path string) {
			for _, e := range entries {
				of, one, value, err := config.ApiserverEntry(e)
				if err == nil && of == cluster && (one == server || one == "" && path == "") {
					path = value
				}
			}
			return path
		}
		t := apimetrics.Target{
			Cluster: cluster, APIServer: server, URL: address,
			TokenFile: file(c.TokenFiles), CAFile: file(c.CAFiles), CertFile: file(c.CertFiles), KeyFile: file(c.KeyFiles),
		}
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("completeness-scrape: %s: %w", entry, err)
		}
		out = append(out, t)
	}
	return out, nil
}
