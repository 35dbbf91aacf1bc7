package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// TestConnectionSteps: each step's state and words in every situation that has words of its
// own. A case changes one thing in a cluster that is connected.
func TestConnectionSteps(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	year := now.Add(365 * 24 * time.Hour)
	since := before(time.Hour)
	refused := func(cluster string, reason webhook.Reason, at time.Time) webhook.Refusal {
		return webhook.Refusal{Cluster: cluster, Remote: "10.0.0.9", Reason: reason, Detail: "told\x1b[31m", First: at, Last: at, Count: 1}
	}
	share := func(outcome, class string, n int64) storage.Share {
		return storage.Share{Outcome: outcome, Class: class, Requests: n}
	}
	read := func(at time.Time) prometheus.Gatherer { // when the apiserver's counters were read last
		reg := prometheus.NewRegistry()
		m, err := newCompletenessMetrics(reg)
		if err != nil {
			t.Fatal(err)
		}
		m.failures.WithLabelValues("prod", "")
		m.read.WithLabelValues("prod", "").Set(float64(at.Unix()))
		return reg
	}
	connected := func() connectionFacts {
		cfg := config.Default()
		cfg.DataDir = "/srv/retrial"
		cfg.Completeness.Scrape = []string{"prod=https://10.0.0.9:6443"}
		return connectionFacts{
			cluster: "prod", now: now,
			site:     site{cfg: cfg, serving: true, contacts: webhook.NewContacts(nil), metrics: read(now), hook: func() string { return "0.0.0.0:9443" }},
			entry:    identity.Cluster{Name: "prod", Certificates: []identity.Certificate{{Serial: "1", Expires: year}}},
			receiver: receiverJSON{Serving: true, Listen: "0.0.0.0:9443", Names: []string{"localhost", "retrial.example"}, Since: &since},
			followed: &webhook.Accepted{First: since, Last: before(20 * time.Second), Posts: 5, Events: 1100, Remote: "10.0.0.9"},
			accepted: &webhook.Accepted{First: since, Last: before(10 * time.Second), Posts: 3, Events: 1200, Remote: "10.0.0.9"},
			stored:   storage.Cluster{Name: "prod", Events: 1200, First: since, Last: before(time.Minute)},
			state:    stateFacts{objects: 355},
			shares:   []storage.Share{share("match", "", 980), share("drift", "unexplained-reason", 2), share("indeterminate", verdict.ClassNodeGraph, 18), share("not_judged", "", 7)},
		}
	}
	for name, tc := range map[string]struct {
		change      func(*connectionFacts)
		step, state string
		says        []string
	}{
		"registered":                 {func(*connectionFacts) {}, stepRegistered, stateDone, []string{"valid until 2027-11-20"}},
		"not registered":             {func(f *connectionFacts) { f.entry, f.registered = identity.Cluster{}, identity.ErrUnknown }, stepRegistered, stateWaiting, []string{"Nobody has registered it", "retrial connect prod --data-dir /srv/retrial"}},
		"an unreadable entry":        {func(f *connectionFacts) { f.registered = errors.New("line 3") }, stepRegistered, stateFailed, []string{"cannot be read: line 3"}},
		"named by the file":          {func(f *connectionFacts) { f.entry = identity.Cluster{} }, stepRegistered, stateDone, []string{"token file"}},
		"revoked":                    {func(f *connectionFacts) { f.entry.Revoked = &since }, stepRegistered, stateFailed, []string{"revoked on 2026-11-20", "retrial cluster rotate prod --output"}},
		"expired":                    {func(f *connectionFacts) { f.entry.Certificates[0].Expires = since }, stepRegistered, stateFailed, []string{"expired on 2026-11-20", "rotate"}},
		"its certificate is revoked": {func(f *connectionFacts) { f.entry.Certificates[0].Revoked = &since }, stepRegistered, stateFailed, []string{"No certificate of it is valid"}},
		"a token alone": {func(f *connectionFacts) {
			f.entry.Certificates, f.entry.Tokens = nil, []identity.Token{{Hash: "x"}}
		}, stepRegistered, stateDone, []string{"with a token"}},

		"connected":       {func(*connectionFacts) {}, stepConnected, stateDone, []string{"3 posts from 10.0.0.9, the last 10 s ago."}},
		"no server":       {func(f *connectionFacts) { f.site.serving = false }, stepConnected, stateFailed, []string{"No server is running", "retrial serve --webhook-listen 0.0.0.0:9443 --webhook-advertise HOST --data-dir /srv/retrial"}},
		"never heard of":  {func(f *connectionFacts) { f.accepted = nil }, stepConnected, stateWaiting, []string{"Nobody has posted for it since the server started, 60 min ago.", "names localhost, retrial.example", "apiserver_audit_error_total"}},
		"another process": {func(f *connectionFacts) { f.accepted = nil; f.site.cfg.Kafka.Brokers = []string{"a:1"} }, stepConnected, stateDone, []string{"another process"}},
		"no process of several": {func(f *connectionFacts) {
			f.accepted, f.site.cfg.Kafka.Brokers, f.stored.Last = nil, []string{"a:1"}, before(time.Hour)
		}, stepConnected, stateWaiting, []string{"Nobody has posted"}},
		"only loopback":  {func(f *connectionFacts) { f.accepted = nil; f.site.hook = func() string { return "127.0.0.1:9443" } }, stepConnected, stateWaiting, []string{"this machine alone", "retrial serve --webhook-listen 0.0.0.0"}},
		"quiet for long": {func(f *connectionFacts) { f.accepted.Last = before(7 * time.Minute) }, stepConnected, stateFailed, []string{"Nothing has come since 2026-11-20T11:53:00Z (7 min ago)"}},
		"refused since": {func(f *connectionFacts) {
			f.refusals = []webhook.Refusal{refused("prod", webhook.ReasonCredential, before(time.Second))}
		}, stepConnected, stateFailed, []string{"An apiserver of it, at 10.0.0.9, was turned away just now: told", "rotate prod"}},
		"refused before": {func(f *connectionFacts) {
			f.refusals = []webhook.Refusal{refused("prod", webhook.ReasonCredential, before(time.Minute))}
		}, stepConnected, stateDone, nil},
		"somebody else's": {func(f *connectionFacts) {
			f.refusals = []webhook.Refusal{refused("", webhook.ReasonUnknownAuthority, before(time.Second))}
		}, stepConnected, stateDone, nil},
		"perhaps its own": {func(f *connectionFacts) {
			f.accepted, f.refusals = nil, []webhook.Refusal{refused("", webhook.ReasonUnknownAuthority, before(30*time.Second))}
		}, stepConnected, stateFailed, []string{"Somebody at 10.0.0.9 was turned away 30 s ago: it presents a certificate of another authority.", "retrial connect prod"}},
		"it does not trust us": {func(f *connectionFacts) {
			f.accepted, f.refusals = nil, []webhook.Refusal{refused("", webhook.ReasonNotTrusted, before(30*time.Second))}
		}, stepConnected, stateFailed, []string{"Somebody at 10.0.0.9 does not accept the receiver's certificate, 30 s ago.", "names localhost, retrial.example", "--webhook-advertise HOST"}},
		"its clock or time": {func(f *connectionFacts) {
			f.accepted, f.refusals = nil, []webhook.Refusal{refused("", webhook.ReasonExpired, before(30*time.Second))}
		}, stepConnected, stateFailed, []string{"expired, or not valid yet", "clocks"}},
		"plain HTTP": {func(f *connectionFacts) {
			f.accepted, f.refusals = nil, []webhook.Refusal{refused("", webhook.ReasonNotTLS, before(30*time.Second))}
		}, stepConnected, stateFailed, []string{"plain HTTP", "https://"}},
		"a wrong path": {func(f *connectionFacts) { f.refusals = []webhook.Refusal{refused("prod", webhook.ReasonPath, now)} }, stepConnected, stateFailed, []string{"unchanged"}},
		"pushed back":  {func(f *connectionFacts) { f.refusals = []webhook.Refusal{refused("prod", "full", now)} }, stepConnected, stateFailed, []string{"was turned away just now: told"}},
		"TLS of old": {func(f *connectionFacts) {
			f.accepted = nil
			f.refusals = []webhook.Refusal{refused("", webhook.ReasonHandshake, now)}
		}, stepConnected, stateFailed, []string{"the TLS handshake failed: told"}},

		"events":             {func(*connectionFacts) {}, stepFirstEvent, stateDone, []string{"1,200 events stored, the newest of this minute."}},
		"one of long ago":    {func(f *connectionFacts) { f.stored.Events, f.stored.Last = 1, before(72*time.Hour) }, stepFirstEvent, stateDone, []string{"1 event stored, the newest on 2026-11-17."}},
		"accepted, not kept": {func(f *connectionFacts) { f.stored = storage.Cluster{} }, stepFirstEvent, stateWaiting, []string{"1,200 events accepted, not stored yet"}},
		"posts without any":  {func(f *connectionFacts) { f.stored, f.accepted.Events = storage.Cluster{}, 0 }, stepFirstEvent, stateWaiting, []string{"no event in it yet", "kubectl get namespaces"}},
		"none":               {func(f *connectionFacts) { f.stored, f.accepted = storage.Cluster{}, nil }, stepFirstEvent, stateWaiting, []string{"There is none yet."}},

		"state":            {func(*connectionFacts) {}, stepState, stateDone, []string{"355 roles and bindings are known."}},
		"contents unknown": {func(f *connectionFacts) { f.state.unknownObjects = 3 }, stepState, stateDone, []string{"of 3 the content is not", "RequestResponse", "retrial import --cluster prod"}},
		"no state":         {func(f *connectionFacts) { f.state = stateFacts{unknownKinds: rbacKinds} }, stepState, stateWaiting, []string{"Nobody has told which ClusterRoles,", "kubectl get clusterroles,", "retrial import --cluster prod --state state.json --data-dir /srv/retrial"}},
		"not listed yet":   {func(f *connectionFacts) { f.state.unknownKinds, f.watched = []string{"Roles"}, true }, stepState, stateWaiting, []string{"The watch has not listed all of it yet: Roles.", "watch-rbac.yaml"}},

		"coverage":       {func(*connectionFacts) {}, stepCoverage, stateDone, []string{"Of 1,000 requests in the newest hour 98.0 % match, 0.2 % drift, 1.8 % are indeterminate."}},
		"nothing judged": {func(f *connectionFacts) { f.shares = []storage.Share{share("not_judged", "", 7)} }, stepCoverage, stateWaiting, []string{"None has been judged yet."}},
		"state is wanted": {func(f *connectionFacts) {
			f.shares = []storage.Share{share("match", "", 80), share("indeterminate", verdict.ClassNoState, 20)}
		}, stepCoverage, stateWaiting, []string{"20.0 % are indeterminate", "retrial import --cluster prod"}},
		"nodes alone wait": {func(f *connectionFacts) {
			f.shares = []storage.Share{share("match", "", 50), share("indeterminate", verdict.ClassNodeGraph, 50)}
		}, stepCoverage, stateDone, []string{"50.0 % are indeterminate"}},
		"drift": {func(f *connectionFacts) {
			f.shares = []storage.Share{share("match", "", 50), share("drift", "unexplained-reason", 50)}
		}, stepCoverage, stateDone, []string{"50.0 % drift", "another cluster or time"}},

		"followed": {func(*connectionFacts) {}, stepFollowed, stateDone, []string{"5 posts from 10.0.0.9, the last 20 s ago."}},
		"a follower that went": {func(f *connectionFacts) { f.followed.Last = before(20 * time.Minute) }, stepFollowed, stateFailed,
			[]string{"has posted nothing since 2026-11-20T11:40:00Z (20 min ago)", "systemctl status retrial-follow"}},
		"one of two is followed": {func(f *connectionFacts) { f.unfollowed = []string{"b"} }, stepFollowed, stateFailed,
			[]string{"nobody has posted from that of b: a batch that its webhook drops", "systemctl status retrial-follow"}},
		"nobody follows": {func(f *connectionFacts) { f.followed = nil }, stepFollowed, stateWaiting,
			[]string{"since the server started, 60 min ago", "a batch that the webhook drops would be lost for good", "retrial import --follow --webhook-config"}},
		"a log alone": {func(f *connectionFacts) { f.accepted = nil }, stepConnected, stateWaiting, []string{"from its audit log alone"}},

		"counted":       {func(*connectionFacts) {}, stepCounted, stateDone, []string{"The counters of 1 apiserver are read."}},
		"not counted":   {func(f *connectionFacts) { f.site.cfg.Completeness.Scrape = nil }, stepCounted, stateWaiting, []string{"Nobody reads the apiservers' counters", "retrial cluster scrape prod --url https://ADDRESS:6443", "--data-dir /srv/retrial"}},
		"never read":    {func(f *connectionFacts) { f.site.metrics = read(time.Unix(0, 0)) }, stepCounted, stateWaiting, []string{"Never read: the counters of the apiserver.", "the right to get /metrics"}},
		"read long ago": {func(f *connectionFacts) { f.site.metrics = read(before(time.Hour)) }, stepCounted, stateFailed, []string{"The counters of the apiserver were not read in the last 5m0s.", "its token expired", "retrial cluster scrape prod"}},
		"about to be":   {func(f *connectionFacts) { f.site.metrics = nil }, stepCounted, stateWaiting, []string{"The server has not begun to read them."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := connected()
			tc.change(&f)
			for _, s := range f.steps() {
				if s.ID != tc.step {
					continue
				}
				if s.State != tc.state {
					t.Errorf("the step is %s: %s", s.State, s.Text)
				}
				for _, w := range tc.says {
					if !strings.Contains(s.Text+"\n"+s.Todo, w) {
						t.Errorf("%q is not in: %s\n%s", w, s.Text, s.Todo)
					}
				}
				if s.State == stateFailed && s.Todo == "" && tc.step == stepConnected && !strings.Contains(s.Text, "told") {
					t.Errorf("nothing to do: %s", s.Text)
				}
			}
		})
	}
	f := connected()
	var ids []string
	for _, s := range f.steps() {
		ids = append(ids, s.ID)
		if s.State != stateDone || s.Title == "" || s.Todo != "" {
			t.Errorf("a connected cluster: %+v", s)
		}
	}
	if got := strings.Join(ids, " "); got != "registered connected first-event state coverage followed counted" {
		t.Errorf("the steps are %s", got)
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", time.Second: "just now", 119 * time.Second: "119 s ago", 5 * time.Minute: "5 min ago", 3 * time.Hour: "3 h ago", 49 * time.Hour: "on 2026-11-18",
	} {
		if got := phrase.Ago(now, now.Add(-d)); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := phrase.Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := fmt.Sprint(size(512), size(2<<30)); got != "512 B 2.0 GiB" && got != "512 B2.0 GiB" {
		t.Errorf("sizes %q", got)
	}
}
