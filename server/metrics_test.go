package server

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/storage/sqlgate"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/golden"
)

// descriptions collects what is registered, whether or not it has values yet.
type descriptions struct {
	*prometheus.Registry
	lines map[string]string
}

func (d descriptions) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 1024)
	c.Describe(ch)
	close(ch)
	for desc := range ch {
		name, help, labels := parseDesc(desc.String())
		if strings.HasPrefix(name, "retrial_") {
			d.lines[name] = fmt.Sprintf("| `%s` | %s | %s |\n", name, labels, help)
		}
	}
	return d.Registry.Register(c)
}

func (d descriptions) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

// parseDesc reads the text form of a description, the only one the library gives.
func parseDesc(s string) (name, help, labels string) {
	between := func(before, after string) string {
		_, rest, _ := strings.Cut(s, before)
		v, _, _ := strings.Cut(rest, after)
		return v
	}
	name, help = between(`fqName: "`, `"`), between(`help: "`, `", unit: `)
	labels = strings.ReplaceAll(between("variableLabels: {", "}"), ",", ", ")
	return name, strings.ReplaceAll(help, `\"`, `"`), labels
}

func TestDocsMetrics(t *testing.T) {
	storagetest.Need(t)
	dir := t.TempDir()
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(dir, "d"), filepath.Join(dir, "key")
	reg := descriptions{prometheus.NewRegistry(), map[string]string{}}
	sys, err := openSystem(t.Context(), cfg, zap.NewNop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sys.close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := sys.receiver(false); err != nil {
		t.Fatal(err)
	}
	if err := sys.openSpool(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlgate.New(t.Context(), sqlgate.Config{
		Open: sessionsOf(sys), Database: "retrial", User: "u", Password: "p", Registerer: reg,
	}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig,
		[]byte("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}], contexts: [{name: c, "+
			"context: {cluster: c}}], current-context: c}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newWatcher(t.Context(), sys, "c="+kubeconfig); err != nil {
		t.Fatal(err)
	}
	lines := make([]string, 0, len(reg.lines))
	for _, l := range reg.lines {
		lines = append(lines, l)
	}
	sort.Strings(lines)
	golden.File(t, "docs/metrics.md", `# Metrics

For operators: every metric of Retrial, its labels and what it means.

Generated from the registry; change a metric's help text where it is made and run `+"`make golden`"+`. `+"`/metrics`"+` on the page's
listener also has Go's own and the process's metrics. Labels come from closed sets.

When nothing is under way, events a receiver acknowledged + dead letters = events sent to it, and
retrial_runner in = out + dead-lettered + duplicates.

| metric | labels | meaning |
| --- | --- | --- |
`+strings.Join(lines, ""))
}
