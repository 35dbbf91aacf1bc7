package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/replay"
	apiserver "github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
)

// mostUnknown bounds the missing parts of a configuration that a check names.
const mostUnknown = 5

// apiserverCheck reports what is known of the configuration of a cluster's apiserver, and what is
// missing.
func (s Site) apiserverCheck(c *Checks, cluster string) {
	const id = "apiserver-config"
	var history *apiserver.History
	if s.Apiserver != nil {
		history = s.Apiserver(cluster, "")
	}
	versions := 0
	history.Visit(func(time.Time, *apiserver.APIServer) { versions++ })
	if versions == 0 {
		c.Add(id, CheckWarn, fmt.Sprintf("retrial serve --apiserver-config %s=DIR    # docs/apiserver-config.md", cluster),
			"Its apiserver's configuration is not known: the node and RBAC authorizers are assumed, and any authenticator.")
		return
	}
	now := history.At(s.time())
	if now == nil {
		c.Add(id, CheckWarn, "See docs/apiserver-config.md about versions.", "Its apiserver's configuration is known for other "+
			"times, and not for now.")
		return
	}
	text := "Its apiserver's configuration is " + now.Digest
	if versions > 1 {
		text += fmt.Sprintf(", the one in force now of %d versions", versions)
	}
	if len(now.Unknown) == 0 {
		c.Add(id, CheckOK, "", "%s; nothing is missing.", text)
		return
	}
	missing, more := now.Unknown, ""
	if n := len(missing) - mostUnknown; n > 0 {
		missing, more = missing[:mostUnknown], fmt.Sprintf(", and %d more", n)
	}
	c.Add(id, CheckWarn, "retrial config check "+phrase.ShellWord(s.apiserverFolder(cluster)),
		"%s; missing: %s%s. What depends on that is judged as unknown.", text, strings.Join(missing, "; "), more)
}

func (s Site) apiserverFolder(cluster string) string {
	for _, entry := range s.Config.Replay.ApiserverConfig {
		if name, dir, err := config.ApiserverFolder(entry); err == nil && name == cluster {
			return config.Absolute(dir)
		}
	}
	return "DIR"
}

// cacheLagCheck reports how late the apiservers of a cluster decide, if that was learnt.
func (a *Service) cacheLagCheck(c *Checks, cluster string) {
	learnt, ok := a.Replay.(interface{ Lags() []replay.Lag })
	if !ok {
		return
	}
	assumed := time.Duration(a.Site.Config.Replay.Lag)
	for _, l := range learnt.Lags() {
		if l.Cluster != cluster || l.Learnt == 0 {
			continue
		}
		who := strings.TrimSuffix("Its apiserver "+l.Server, " ")
		state, todo, end := CheckOK, "", "."
		if l.Learnt > assumed {
			state, todo = CheckWarn, "retrial serve --replay-lag "+l.Learnt.String()+", then retrial rejudge --since TIME"
			end = ": requests right after a change may drift."
		}
		c.Add("cache-lag", state, todo, "%s decides by a policy up to %s old, as %s show; %s are allowed for%s", who, l.Learnt,
			phrase.Number(int(l.Requests), "request"), assumed, end)
	}
}

// aggregatedCheck reports requests that reached the cluster's aggregated API servers past its
// kube-apiserver, in the day before a time.
func (a *Service) aggregatedCheck(ctx context.Context, c *Checks, cluster string, last time.Time) error {
	if a.Site.Apiserver == nil {
		return nil
	}
	servers := a.Site.Apiserver(cluster, "").Servers()
	if len(servers) == 0 {
		return nil
	}
	const id = "aggregated"
	found, err := a.Store.DirectRequests(ctx, cluster, servers, lineage.Aggregators(), last.Add(-traitsRange), last)
	if err != nil {
		return err
	}
	for _, d := range found {
		c.Add(id, CheckWarn, "To see who it was: retrial why "+d.AuditID+". Only the kube-apiserver should reach the server; or the audit "+
			"policy of the kube-apiserver leaves these requests out.",
			"%s at %s bypassed the kube-apiserver in the last day, by %s; the first by %s to %s.",
			phrase.Number(int(d.Requests), "request"), d.APIServer, phrase.Number(int(d.Users), "user"), phrase.Shorten(d.User),
			phrase.Shorten(d.URI))
	}
	if len(found) == 0 {
		c.Add(id, CheckOK, "", "What reached %s in the last day came through the kube-apiserver.", strings.Join(servers, ", "))
	}
	return nil
}

// versionCheck reports which versions of Kubernetes a cluster's apiservers run, by their own requests, and whether what is set agrees.
func (a *Service) versionCheck(c *Checks, cluster string, s *state.State) {
	const id = "version"
	seen := s.Servers()
	if len(seen) == 0 {
		if given := a.Site.versionGiven(cluster, ""); given == 0 {
			c.Add(id, CheckWarn, "Keep the requests of system:apiserver in the audit policy (deploy/audit-policy.yaml), or set "+
				"kubernetesVersion in server.yaml of --apiserver-config.",
				"Its log does not show which version of Kubernetes its apiserver is: the newest is assumed.")
		}
		return
	}
	var texts []string
	for _, server := range slices.Sorted(maps.Keys(seen)) {
		list := seen[server]
		who := "its apiserver"
		if server != "" {
			who = "apiserver " + server
		}
		newest := slices.MaxFunc(list, func(a, b state.Release) int { return a.Last.Compare(b.Last) })
		text := who + " is " + newest.String()
		for _, r := range list {
			if r != newest {
				text += fmt.Sprintf(", was %s until %s", r, r.Last.UTC().Format(time.RFC3339))
			}
		}
		texts = append(texts, text)
		if given := a.Site.versionGiven(cluster, server); given != 0 && given != newest.Minor {
			c.Add(id, CheckFail, fmt.Sprintf("Set kubernetesVersion: %q in server.yaml of %s, then retrial rejudge --cluster %s.", newest,
				a.Site.apiserverFolder(cluster), cluster),
				"By its own requests %s is Kubernetes %s; its configuration says 1.%d, by which its requests are judged.", who,
				newest, given)
		}
	}
	c.Add(id, CheckOK, "", "By their own requests: %s.", strings.Join(texts, "; "))
}

// versionGiven returns the minor version in the present configuration of an apiserver, 0 if it has
// none, or one that it emulates.
func (s Site) versionGiven(cluster, server string) int {
	if s.Apiserver == nil {
		return 0
	}
	cfg := s.Apiserver(cluster, server).At(s.time())
	if cfg == nil || cfg.Guessed || cfg.Emulates {
		return 0
	}
	return cfg.Minor
}

// ConfigReport is an apiserver's configuration as it was read, and whether it is complete.
type ConfigReport struct {
	Complete bool `json:"complete"`
	*apiserver.Report
}

// ConfigReading is one version of a configuration as it was read, ConfigNote a line of it.
type (
	ConfigReading = apiserver.Reading
	ConfigNote    = apiserver.Note
)

// CheckConfig reads a folder with the configuration of a cluster's apiservers, as the engine does.
func CheckConfig(dir string) (*ConfigReport, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	_, report, err := apiserver.ReadHistory(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &ConfigReport{report.Complete(), report}, nil
}
