package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	apiserver "github.com/retrial-io/retrial/replay/config"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// fakeDoctor is the part of the fake store that the doctor asks.
type fakeDoctor struct {
	shares  []queries.Share
	traits  queries.LogTraits
	letters []queries.Letters
	folded  []queries.FoldedDay
	disk    int64
	direct  []queries.DirectRequests
}

func (f fakeDoctor) DirectRequests(context.Context, string, []string, []string, time.Time, time.Time) ([]queries.DirectRequests, error) {
	return f.direct, nil
}

func (f fakeDoctor) Outcomes(context.Context, string, time.Time, time.Time) ([]queries.Share, error) {
	return f.shares, nil
}

func (f fakeDoctor) LogTraits(context.Context, string, time.Time, time.Time) (queries.LogTraits, error) {
	return f.traits, nil
}

func (f fakeDoctor) Folded(context.Context, time.Time) ([]queries.FoldedDay, error) {
	return f.folded, nil
}

func (f fakeDoctor) DeadLetters(context.Context, time.Time) ([]queries.Letters, error) {
	return f.letters, nil
}

func (f fakeDoctor) DiskBytes(context.Context) (int64, error) { return f.disk, nil }

// lagging is a replay that is behind.
type lagging struct {
	fakeReplay
	lag  verdict.Backlog
	lags []replay.Lag
}

// Lags are what was learnt of apiservers.
func (l lagging) Lags() []replay.Lag { return l.lags }

func (l lagging) Lag() verdict.Backlog { return l.lag }

// patient is what a doctor looks at in a test.
type patient struct {
	store    *fakeStore
	lag      verdict.Backlog
	lags     []replay.Lag
	site     doctor.Site
	registry *prometheus.Registry
	dir      string
	now      time.Time
}

// aggregatedServer is the configuration of a cluster with one aggregated API server.
func aggregatedServer(_, server string) *apiserver.History {
	h, own := &apiserver.History{}, &apiserver.History{}
	own.Add(time.Time{}, &apiserver.APIServer{Source: "wardle"})
	h.AddServer("wardle", own)
	return h.Of(server)
}

// configuredAs is a cluster with these configurations, one an hour, the last since long ago.
func configuredAs(list ...apiserver.APIServer) func(cluster, server string) *apiserver.History {
	h := &apiserver.History{}
	for i := range list {
		h.Add(time.Unix(int64(i)*3600, 0), &list[i])
	}
	return func(_, server string) *apiserver.History { return h.Of(server) }
}

// newPatient is an installation in order, with one registered cluster that posts.
func newPatient(t *testing.T) *patient {
	t.Helper()
	dir := t.TempDir()
	p := &patient{dir: dir, registry: prometheus.NewRegistry(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return p.now }
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(dir, "data"), filepath.Join(dir, "key")
	if _, _, err := identity.KeyFile(cfg.KeyFile, cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	a, err := identity.Open(identity.Config{Dir: filepath.Join(cfg.DataDir, "pki"), Now: now}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Registry().Add("prod"); err != nil {
		t.Fatal(err)
	}
	p.site = doctor.Site{Config: cfg, Serving: true, Authority: a, Contacts: webhook.NewContacts(now),
		Hook: func() string { return "0.0.0.0:9443" }, Metrics: p.registry, Now: now}
	p.store = &fakeStore{stored: []queries.Cluster{{Name: "prod", Events: 5000, First: p.now.Add(-time.Hour),
		Last: p.now.Add(-time.Minute)}}}
	p.store.shares = []queries.Share{{Outcome: "match", Requests: 100}}
	p.store.traits = queries.LogTraits{Events: 5000, Live: 5000, Reads: 4000, Complete: 5000, PolicyWrites: 3, MinDelay: time.Second,
		MedianDelay: 3 * time.Second}
	return p
}

// gauge sets a metric of the server.
func (p *patient) gauge(name string, value float64, labels prometheus.Labels) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, ConstLabels: labels})
	g.Set(value)
	p.registry.MustRegister(g)
}

// findings sets how far findings are behind, and how many of three parts this process has.
func (p *patient) findings(seconds, led float64) {
	p.gauge(doctor.MetricDetectLag, seconds, nil)
	p.gauge(doctor.MetricDetectParts, 3, nil)
	p.gauge(doctor.MetricDetectPartsLed, led, nil)
}

// examine answers the checks of an ID.
func (p *patient) examine(t *testing.T, id, cluster string) []doctor.Check {
	t.Helper()
	a := doctor.Service{Service: &query.Service{Store: p.store, Replay: lagging{p.store.replay(), p.lag, p.lags}, Now: p.site.Now},
		Store: p.store, Site: p.site}
	v, err := a.Doctor(t.Context(), doctor.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(v.Checks, func(c doctor.Check) bool { return c.ID != id || c.Cluster != cluster })
}

// TestDoctor: each check says what is wrong, in which degree, and what to do. A case changes
// one thing in an installation that is in order.
func TestDoctor(t *testing.T) {
	letters := []queries.Letters{{Cluster: "prod", Reason: "too-large", Count: 1200}, {Cluster: "test", Reason: "malformed-item", Count: 1}}
	for name, tc := range map[string]struct {
		change            func(*testing.T, *patient)
		id, cluster, want string
		says              string
	}{
		"a server": {func(*testing.T, *patient) {}, "server", "", doctor.CheckOK, "It is running"},
		"no server": {func(_ *testing.T, p *patient) { p.site.Serving = false }, "server", "", doctor.CheckFail,
			"retrial serve --data-dir"},
		"a real store": {func(_ *testing.T, p *patient) { p.site.Config.ClickHouse.DSN = "http://x" }, "store", "", doctor.CheckOK,
			"ClickHouse server"},
		"no library": {func(_ *testing.T, p *patient) { p.site.Config.ClickHouse.Library = p.dir + "/none.so" }, "store", "",
			doctor.CheckFail, "none.so"},

		"nobody counts": {func(*testing.T, *patient) {}, "completeness", "prod", doctor.CheckWarn,
			"retrial cluster scrape prod --url https://ADDRESS:6443"},
		"counted, not known yet": {func(_ *testing.T, p *patient) {
			p.site.Config.Completeness.Scrape = []string{"prod=https://10.0.0.1:6443"}
			labels := prometheus.Labels{"cluster": "prod", "apiserver": ""}
			p.gauge("retrial_completeness_read_timestamp_seconds", float64(p.now.Unix()), labels)
			p.gauge("retrial_completeness_read_failures_total", 0, labels)
		}, "completeness", "prod", doctor.CheckWarn, "is being read, and not known yet"},
		"nobody follows": {func(*testing.T, *patient) {}, doctor.StepFollowed, "prod", doctor.CheckWarn,
			"a batch that the webhook drops would be lost for good"},

		"a key": {func(*testing.T, *patient) {}, "key-file", "", doctor.CheckOK, "back it up"},
		"a key among the data": {func(_ *testing.T, p *patient) { p.site.Config.KeyFile = p.site.Config.DataDir + "/key" }, "key-file", "",
			doctor.CheckFail, "--key-file"},
		"no key yet": {func(_ *testing.T, p *patient) { p.site.Config.KeyFile = p.dir + "/other" }, "key-file", "", doctor.CheckWarn,
			"There is no redaction key"},
		"a key that is lost": {func(t *testing.T, p *patient) {
			put(t, p.site.Config.DataDir+"/redaction-key.id", "x")
			p.site.Config.KeyFile = p.dir + "/other"
		}, "key-file", "", doctor.CheckFail, "Restore it"},
		"a key for everyone": {func(t *testing.T, p *patient) {
			if err := os.Chmod(p.site.Config.KeyFile, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "key-file", "", doctor.CheckFail, "chmod 600"},

		"certificates": {func(*testing.T, *patient) {}, "certificates", "", doctor.CheckOK, "renews itself"},
		"nothing made yet": {func(_ *testing.T, p *patient) { p.site.Authority = nil }, "certificates", "", doctor.CheckOK,
			"No certificate authority"},
		"the server's near its end": {func(_ *testing.T, p *patient) { p.now = p.now.Add(350 * 24 * time.Hour) }, "certificates", "",
			doctor.CheckWarn, "The running server renews it if ca.key exists"},
		"the server's at its end": {func(_ *testing.T, p *patient) { p.now = p.now.Add(366 * 24 * time.Hour) }, "certificates", "",
			doctor.CheckFail, "valid until 2027-11-20"},
		"the authority's near its end": {func(_ *testing.T, p *patient) { p.now = p.now.Add(3600 * 24 * time.Hour) }, "certificates", "",
			doctor.CheckWarn, "retrial cluster rotate --authority"},
		"no authority's file": {func(t *testing.T, p *patient) {
			if err := os.Remove(p.site.Config.DataDir + "/pki/ca.crt"); err != nil {
				t.Fatal(err)
			}
		}, "certificates", "", doctor.CheckFail, "Restore the folder"},
		"a cluster's near its end": {func(_ *testing.T, p *patient) { p.now = p.now.Add(350 * 24 * time.Hour) }, "certificate", "prod",
			doctor.CheckWarn, "retrial cluster rotate prod"},

		"a listener": {func(*testing.T, *patient) {}, "listener", "", doctor.CheckOK, "0.0.0.0:9443"},
		"loopback alone": {func(_ *testing.T, p *patient) { p.site.Hook = func() string { return "127.0.0.1:9443" } }, "listener", "",
			doctor.CheckWarn, "only this machine"},
		"a small lag": {func(_ *testing.T, p *patient) { p.lag.Events = 1 }, "lag", "", doctor.CheckOK, "1 event accepted"},
		"a wide lag": {func(_ *testing.T, p *patient) { p.lag.Events = doctor.WideLag + 1 }, "lag", "", doctor.CheckWarn,
			"100,001 events"},
		"a wide policy lag": {func(_ *testing.T, p *patient) { p.lag.Policy = doctor.WidePolicyLag + 1 }, "policy-lag", "",
			doctor.CheckWarn, "10,001 policy changes"},
		"findings in time": {func(_ *testing.T, p *patient) { p.findings(299, 3) }, "findings", "", doctor.CheckOK,
			"They are 4m59s behind"},
		"findings late": {func(_ *testing.T, p *patient) { p.findings(301, 1) }, "findings", "", doctor.CheckFail,
			"Findings are 5m1s behind"},
		"others find too": {func(_ *testing.T, p *patient) { p.findings(20, 1) }, "findings", "", doctor.CheckOK,
			"20s behind what is stored, in the 1 of 3 parts"},
		"nobody finds": {func(_ *testing.T, p *patient) { p.findings(600, 0) }, "findings", "", doctor.CheckFail, "10m0s behind"},
		"another finds": {func(_ *testing.T, p *patient) {
			p.site.Config.Kafka.Brokers = []string{"a:1"}
			p.findings(0, 0)
		}, "findings", "", doctor.CheckOK, "Another process"},
		"detections off": {func(_ *testing.T, p *patient) { p.site.Config.Detect.Enabled = false }, "findings", "", doctor.CheckWarn,
			"switched off"},
		"nothing folded": {func(*testing.T, *patient) {}, "folded", "", doctor.CheckOK, "apart"},
		"folded": {func(_ *testing.T, p *patient) {
			p.store.folded = []queries.FoldedDay{{Cluster: "prod", Rule: "first-seen-access", Requests: 95_904},
				{Cluster: "test", Requests: 1}}
		}, "folded", "", doctor.CheckWarn, "95,904 requests of prod with keys of first-seen-access beyond those of a day, 1 request of " +
			"test of subjects beyond those of a day"},
		"no dead letters": {func(*testing.T, *patient) {}, "dead-letters", "", doctor.CheckOK, "None"},
		"dead letters": {func(_ *testing.T, p *patient) { p.store.letters = letters }, "dead-letters", "", doctor.CheckWarn,
			"1,201 dead letters in the last day: 1,200 too-large of prod, 1 malformed-item of test"},
		"a disk": {func(_ *testing.T, p *patient) { p.store.disk = 3 << 20 }, "disk", "", doctor.CheckOK, "The store uses 3.0 MiB"},
		"no cap": {func(_ *testing.T, p *patient) { p.site.Config.ClickHouse.DSN = "http://x:8123" }, "retention", "",
			doctor.CheckOK, "Events are kept for 30d, without a cap"},
		"the usual cap": {func(*testing.T, *patient) {}, "retention", "", doctor.CheckOK, "Events are kept for 30d, within a cap of"},
		"within the cap": {func(_ *testing.T, p *patient) {
			p.site.Config.Retention.DiskCap, p.site.Config.Retention.Events, p.store.disk = 10<<30, 0, 1<<30
		}, "retention", "", doctor.CheckOK, "Events are kept forever, within a cap of 10.0 GiB; 1.0 GiB"},
		"near the cap": {func(_ *testing.T, p *patient) { p.site.Config.Retention.DiskCap, p.store.disk = 10<<30, 9<<30 }, "retention", "",
			doctor.CheckWarn, "the oldest day of events is deleted first"},
		"a real Kafka": {func(_ *testing.T, p *patient) { p.site.Config.Kafka.Brokers = []string{"a:1"} }, "stream", "", doctor.CheckOK,
			"Kafka at a:1"},
		"a broker's log": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_embedded_log_bytes", 1<<20, nil)
			p.gauge("retrial_embedded_log_limit_bytes", 1<<30, nil)
		}, "stream", "", doctor.CheckOK, "holds 1.0 MiB of at most 1.0 GiB"},
		"a broker's log near its end": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_embedded_log_bytes", 9<<20, nil)
			p.gauge("retrial_embedded_log_limit_bytes", 10<<20, nil)
		}, "stream", "", doctor.CheckWarn, "slowed down"},
		"a broker that cannot sync": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_embedded_log_bytes", 1, nil)
			p.gauge("retrial_embedded_sync_failed", 1, nil)
		}, "stream", "", doctor.CheckFail, "nothing is acknowledged"},

		"an empty spool": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_spool_bytes", 0, nil)
			p.gauge("retrial_spool_max_bytes", 1<<30, nil)
		}, "spool", "", doctor.CheckOK, "holds 0 records in 0 B of at most 1.0 GiB"},
		"a spool in use": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_spool_bytes", 1<<20, nil)
			p.gauge("retrial_spool_max_bytes", 1<<30, nil)
			p.gauge("retrial_spool_records", 5000, nil)
			p.gauge("retrial_spool_active", 1, nil)
		}, "spool", "", doctor.CheckWarn,
			"Kafka does not take records, or has not taken all of them yet. The spool holds 5,000 records in 1.0 MiB"},
		"a spool near its end": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_spool_bytes", 9<<20, nil)
			p.gauge("retrial_spool_max_bytes", 10<<20, nil)
		}, "spool", "", doctor.CheckFail, "slowed down"},
		"a damaged spool": {func(_ *testing.T, p *patient) {
			p.gauge("retrial_spool_bytes", 0, nil)
			p.gauge("retrial_spool_max_bytes", 1<<30, nil)
			p.gauge("retrial_spool_kept_segments", 2, nil)
		}, "spool", "", doctor.CheckWarn, "has set 2 segments"},
		"no spool": {func(_ *testing.T, p *patient) { p.site.Config.Spool.On = false }, "spool", "", doctor.CheckWarn, "--spool on"},

		"an aggregated server": {func(_ *testing.T, p *patient) { p.site.Apiserver = aggregatedServer }, "aggregated", "prod",
			doctor.CheckOK, "came through the kube-apiserver"},
		"an aggregated server that is reached directly": {func(_ *testing.T, p *patient) {
			p.site.Apiserver = aggregatedServer
			p.store.direct = []queries.DirectRequests{{APIServer: "wardle", Requests: 3, Users: 2, AuditID: "a-1", User: "eve",
				URI: "/apis/w"}}
		}, "aggregated", "prod", doctor.CheckWarn,
			"3 requests at wardle bypassed the kube-apiserver in the last day, by 2 users; the first by eve"},

		"a watch": {func(_ *testing.T, p *patient) {
			p.site.Config.Watch.Clusters = []string{"prod=/kc"}
			p.gauge("retrial_watch_synced", 1, prometheus.Labels{"cluster": "prod", "resource": "roles"})
		}, "watch", "prod", doctor.CheckOK, "listed and watched"},
		"a watch that begins": {func(_ *testing.T, p *patient) {
			p.site.Config.Watch.Clusters = []string{"prod=/kc"}
			p.gauge("retrial_watch_synced", 0, prometheus.Labels{"cluster": "prod", "resource": "roles"})
		}, "watch", "prod", doctor.CheckWarn, "Not watched at this moment: roles."},
		"a watch without rights": {func(_ *testing.T, p *patient) {
			p.site.Config.Watch.Clusters = []string{"prod=/kc"}
			p.gauge("retrial_watch_synced", 0, prometheus.Labels{"cluster": "prod", "resource": "roles"})
			p.gauge("retrial_watch_errors_total", 7, prometheus.Labels{"cluster": "prod", "resource": "roles", "reason": "forbidden"})
		}, "watch", "prod", doctor.CheckFail, "kubectl apply -f deploy/watch-rbac.yaml"},

		"clocks": {func(*testing.T, *patient) {}, "clock", "prod", doctor.CheckOK, "within 3s"},
		"a clock ahead": {func(_ *testing.T, p *patient) { p.store.traits.MinDelay = -90 * time.Second }, "clock", "prod",
			doctor.CheckWarn, "at least 1m30s ahead"},
		"a clock behind": {func(_ *testing.T, p *patient) { p.store.traits.MinDelay = 2 * time.Minute }, "clock", "prod",
			doctor.CheckWarn, "less than 2m0s to arrive"},
		"an audit policy": {func(*testing.T, *patient) {}, "audit-policy", "prod", doctor.CheckOK, "Nothing is missing"},
		"writes without body": {func(_ *testing.T, p *patient) { p.store.traits.PolicyBlind = 2 }, "audit-policy", "prod", doctor.CheckWarn,
			"2 of 3 writes to roles and bindings were recorded without what they wrote"},
		"a useless stage": {func(_ *testing.T, p *patient) { p.store.traits.Received = 9 }, "audit-policy", "prod", doctor.CheckWarn,
			"9 events of the stage RequestReceived"},
		"Secrets with bodies": {func(_ *testing.T, p *patient) { p.store.traits.SecretBodies = 1 }, "audit-policy", "prod",
			doctor.CheckWarn, "1 request about Secrets or tokens"},
		"bodies cut off": {func(_ *testing.T, p *patient) { p.store.traits.Truncated = 1 }, "audit-policy", "prod", doctor.CheckWarn,
			"--audit-webhook-truncate"},
		"no reads": {func(_ *testing.T, p *patient) { p.store.traits.Reads = 0 }, "audit-policy", "prod", doctor.CheckWarn,
			"None of 5,000 events is a read"},
		"no ends": {func(_ *testing.T, p *patient) { p.store.traits.Complete = 0 }, "audit-policy", "prod", doctor.CheckFail,
			"ResponseComplete"},

		"no apiserver's configuration": {func(*testing.T, *patient) {}, "apiserver-config", "prod", doctor.CheckWarn,
			"the node and RBAC authorizers are assumed, and any authenticator.\nretrial serve --apiserver-config prod=DIR"},
		"an apiserver's configuration": {func(_ *testing.T, p *patient) {
			p.site.Apiserver = configuredAs(apiserver.APIServer{Digest: "abc"})
		}, "apiserver-config", "prod", doctor.CheckOK, "is abc; nothing is missing"},
		"a configuration in parts": {func(_ *testing.T, p *patient) {
			p.site.Config.Replay.ApiserverConfig = []string{"test=/elsewhere", "prod=/etc/it's"}
			p.site.Apiserver = configuredAs(apiserver.APIServer{Digest: "abc", Unknown: []string{"a", "b", "c", "d", "e", "f", "g"}})
		}, "apiserver-config", "prod", doctor.CheckWarn,
			"is abc; missing: a; b; c; d; e, and 2 more. What depends on that is judged as unknown.\nretrial config check '/etc/it'\\''s'"},
		"a configuration that was changed": {func(_ *testing.T, p *patient) {
			p.site.Apiserver = configuredAs(apiserver.APIServer{Digest: "old"}, apiserver.APIServer{Digest: "new"})
		}, "apiserver-config", "prod", doctor.CheckOK, "is new, the one in force now of 2 versions"},
		"a configuration of another time": {func(_ *testing.T, p *patient) {
			h := &apiserver.History{}
			h.Add(p.now.Add(time.Hour), &apiserver.APIServer{Digest: "later"})
			p.site.Apiserver = func(string, string) *apiserver.History { return h }
		}, "apiserver-config", "prod", doctor.CheckWarn, "not for now"},
		"a lag that is allowed for": {func(_ *testing.T, p *patient) {
			p.lags = []replay.Lag{{Cluster: "other", Learnt: time.Second, Requests: 9}, {Cluster: "prod"},
				{Cluster: "prod", Server: "cp-1", Learnt: 20 * time.Millisecond, Requests: 3}}
		}, "cache-lag", "prod", doctor.CheckOK, "Its apiserver cp-1 decides by a policy up to 20ms old, as 3 requests show"},
		"a lag that is not": {func(_ *testing.T, p *patient) {
			p.lags = []replay.Lag{{Cluster: "prod", Learnt: 2 * time.Second, Requests: 3}}
		}, "cache-lag", "prod", doctor.CheckWarn, "retrial serve --replay-lag 2s, then retrial rejudge"},

		"its state":  {func(*testing.T, *patient) {}, doctor.StepState, "prod", doctor.CheckWarn, "It is not known which"},
		"its events": {func(*testing.T, *patient) {}, doctor.StepFirstEvent, "prod", doctor.CheckOK, "5,000 events"},
		"a revoked cluster": {func(t *testing.T, p *patient) {
			if err := p.site.Authority.Registry().Revoke("prod"); err != nil {
				t.Fatal(err)
			}
		}, doctor.StepRegistered, "prod", doctor.CheckFail, "revoked on"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.id == "store" && chdb.Suitable() != nil {
				t.Skip("this machine cannot run the embedded store, which is said first")
			}
			p := newPatient(t)
			tc.change(t, p)
			got := p.examine(t, tc.id, tc.cluster)
			if len(got) != 1 || got[0].State != tc.want || !strings.Contains(got[0].Text+"\n"+got[0].Todo, tc.says) {
				t.Errorf("got %+v, want %s with %q", got, tc.want, tc.says)
			}
			if len(got) == 1 && got[0].State != doctor.CheckOK && got[0].Todo == "" && tc.id != doctor.StepFirstEvent {
				t.Errorf("nothing to do: %+v", got[0])
			}
		})
	}
}

// TestDoctorOfAnImport: a log that was brought in by hand connects nobody.
func TestDoctorOfAnImport(t *testing.T) {
	p := newPatient(t)
	p.store.stored = append(p.store.stored, queries.Cluster{Name: "old", Events: 3, First: p.now, Last: p.now})
	p.store.traits.Live = 0
	for id, want := range map[string]int{doctor.StepRegistered: 0, doctor.StepConnected: 0, "certificate": 0, "clock": 0,
		doctor.StepFirstEvent: 1, doctor.StepState: 1, doctor.StepCoverage: 1, "audit-policy": 1} {
		if got := p.examine(t, id, "old"); len(got) != want {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// TestDoctorPrints: what clients chose reaches no terminal, and failures are named.
func TestDoctorPrints(t *testing.T) {
	list := []doctor.Check{
		{ID: "server", State: doctor.CheckOK, Text: "fine", Todo: "never shown"},
		{ID: "connected", Cluster: "prod", State: doctor.CheckFail, Text: "no\x1b[31m", Todo: "do\nthis\x07"},
		{ID: "clock", Cluster: "prod", State: doctor.CheckWarn, Text: "late"},
	}
	out, _ := printed(printChecks, list)
	want := "ok    -     server     fine\nfail  prod  connected  no\\x1b[31m\n                         do\n                         " +
		"this\\x07\nwarn  prod  clock      late\n"
	if out != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
	if err := doctor.Checks(list).Failure(); err == nil || err.Error() != "not in order: connected of prod" {
		t.Errorf("failure: %v", err)
	}
	if err := doctor.Checks(list[:1]).Failure(); err != nil {
		t.Errorf("failure: %v", err)
	}
}

// TestDoctorWithoutAnything looks at a folder nothing was ever put in, and makes nothing.
func TestDoctorWithoutAnything(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	code, out, errs := commandLine(t, "", "doctor", "--data-dir", data, "--key-file", filepath.Join(dir, "key"))
	if code != cli.ExitFinding || !strings.Contains(errs, "not in order: server") {
		t.Errorf("code %d: %s", code, errs)
	}
	says(t, out, "No server is running on "+data, "retrial serve --data-dir "+data, "There is no redaction key",
		"No certificate authority has been created yet")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("looking made %s: %v", data, err)
	}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"a name there cannot be": {[]string{"doctor", "No/1"}, "lower-case letters"},
		"two names":              {[]string{"doctor", "a", "b"}, `unexpected argument "b": one NAME at a time`},
		"unknown form":           {[]string{"doctor", "-o", "xml"}, "want one of table, wide, name, json, yaml, csv, jsonpath=EXPRESSION"},
		"no URL":                 {[]string{"doctor", "--server", "nonsense"}, "want a URL such as http://127.0.0.1:8080"},
	} {
		if code, _, errs := commandLine(t, "", tc.args...); code != cli.ExitUsage || !strings.Contains(errs, tc.says) {
			t.Errorf("%s: code %d: %s", name, code, errs)
		}
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
