package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/replay"
	apiserver "github.com/retrial-io/retrial/replay/config"
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
		c.Add(id, CheckWarn, fmt.Sprintf("retrial serve --apiserver-config %s=DIR (docs/apiserver-config.md)", cluster),
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
	missing := now.Unknown
	more := ""
	if len(missing) > mostUnknown {
		more = fmt.Sprintf(", and %d more", len(missing)-mostUnknown)
		missing = missing[:mostUnknown]
	}
	c.Add(id, CheckWarn, "retrial config check "+phrase.ShellWord(s.apiserverFolder(cluster)),
		"%s; missing: %s%s. What depends on that is judged as unknown.", text, strings.Join(missing, "; "), more)
}

// apiserverFolder returns where the configuration of a cluster's apiserver lies.
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
	const id = "cache-lag"
	learnt, ok := a.Replay.(interface{ Lags() []replay.Lag })
	if !ok {
		return
	}
	assumed := time.Duration(a.Site.Config.Replay.Lag)
	for _, l := range learnt.Lags() {
		if l.Cluster != cluster || l.Learnt == 0 {
			continue
		}
		who := "Its apiserver"
		if l.Server != "" {
			who = "Its apiserver " + l.Server
		}
		if l.Learnt <= assumed {
			c.Add(id, CheckOK, "", "%s decides by a policy up to %s old, as %s show; %s are allowed for.", who, l.Learnt,
				phrase.Number(int(l.Requests), "request"), assumed)
			continue
		}
		c.Add(id, CheckWarn, "retrial serve --replay-lag "+l.Learnt.String()+", then retrial rejudge --since TIME",
			"%s decides by a policy up to %s old, as %s show; %s are allowed for: requests right after a change may drift.", who, l.Learnt,
			phrase.Number(int(l.Requests), "request"), assumed)
	}
}
