package doctor

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
	"github.com/retrial-io/retrial/storage/queries"
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
	share := func(outcome, class string, n int64) queries.Share {
		return queries.Share{Outcome: outcome, Class: class, Requests: n}
	}
	read := func(at time.Time) prometheus.Gatherer { // when the apiserver's counters were read last
		reg := prometheus.NewRegistry()
		last := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricCountersRead}, []string{"cluster", "apiserver"})
		failed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: MetricCountersFailed}, []string{"cluster", "apiserver"})
		reg.MustRegister(last, failed)
		failed.WithLabelValues("prod", "")
		last.WithLabelValues("prod", "").Set(float64(at.Unix()))
		return reg
	}
	connected := func() connectionFacts {
		cfg := config.Default()
		cfg.DataDir = "/srv/retrial"
		cfg.Completeness.Scrape = []string{"prod=https://10.0.0.9:6443"}
		return connectionFacts{
			Cluster: "prod", Now: now,
			Site: Site{Config: cfg, Serving: true, Contacts: webhook.NewContacts(nil), Metrics: read(now),
				Hook: func() string { return "0.0.0.0:9443" }},
			Entry:    identity.Cluster{Name: "prod", Certificates: []identity.Certificate{{Serial: "1", Expires: year}}},
			Receiver: Receiver{Serving: true, Listen: "0.0.0.0:9443", Names: []string{"localhost", "retrial.example"}, Since: &since},
			Followed: &webhook.Accepted{First: since, Last: before(20 * time.Second), Posts: 5, Events: 1100, Remote: "10.0.0.9"},
			Accepted: &webhook.Accepted{First: since, Last: before(10 * time.Second), Posts: 3, Events: 1200, Remote: "10.0.0.9"},
			Stored:   queries.Cluster{Name: "prod", Events: 1200, First: since, Last: before(time.Minute)},
			State:    stateFacts{Objects: 355},
			Shares: []queries.Share{share("match", "", 980), share("drift", "unexplained-reason", 2), share("indeterminate",
				verdict.ClassNodeGraph, 18), share("not_judged", "", 7)},
		}
	}
	for name, tc := range map[string]struct {
		change      func(*connectionFacts)
		step, state string
		says        []string
	}{
		"registered": {func(*connectionFacts) {}, StepRegistered, StateDone, []string{"valid until 2027-11-20"}},
		"not registered": {func(f *connectionFacts) {
			f.Entry, f.Registered = identity.Cluster{},
				identity.ErrUnknown
		}, StepRegistered, StateWaiting, []string{"It is not registered", "retrial connect prod --data-dir /srv/retrial"}},
		"an unreadable entry": {func(f *connectionFacts) { f.Registered = errors.New("line 3") }, StepRegistered,
			StateFailed, []string{"cannot be read: line 3"}},
		"named by the file": {func(f *connectionFacts) { f.Entry = identity.Cluster{} }, StepRegistered, StateDone,
			[]string{"token file"}},
		"revoked": {func(f *connectionFacts) { f.Entry.Revoked = &since }, StepRegistered, StateFailed,
			[]string{"revoked on 2026-11-20", "retrial cluster rotate prod --output"}},
		"expired": {func(f *connectionFacts) { f.Entry.Certificates[0].Expires = since }, StepRegistered,
			StateFailed, []string{"expired on 2026-11-20", "rotate"}},
		"its certificate is revoked": {func(f *connectionFacts) { f.Entry.Certificates[0].Revoked = &since }, StepRegistered,
			StateFailed, []string{"no valid certificate any more"}},
		"a token alone": {func(f *connectionFacts) {
			f.Entry.Certificates, f.Entry.Tokens = nil, []identity.Token{{Hash: "x"}}
		}, StepRegistered, StateDone, []string{"with a token"}},

		"connected": {func(*connectionFacts) {}, StepConnected, StateDone,
			[]string{"3 posts from 10.0.0.9, the last 10 s ago."}},
		"no server": {func(f *connectionFacts) { f.Site.Serving = false }, StepConnected, StateFailed,
			[]string{"No server is running", "retrial serve --webhook-listen 0.0.0.0:9443 --webhook-advertise HOST --data-dir " +
				"/srv/retrial"}},
		"never heard of": {func(f *connectionFacts) { f.Accepted = nil }, StepConnected, StateWaiting,
			[]string{"No apiserver has posted for it since the server started, 60 min ago.", "names localhost, retrial.example",
				"apiserver_audit_error_total"}},
		"another process": {func(f *connectionFacts) { f.Accepted = nil; f.Site.Config.Kafka.Brokers = []string{"a:1"} },
			StepConnected, StateDone, []string{"another process"}},
		"no process of several": {func(f *connectionFacts) {
			f.Accepted, f.Site.Config.Kafka.Brokers, f.Stored.Last = nil, []string{"a:1"}, before(time.Hour)
		}, StepConnected, StateWaiting, []string{"No apiserver has posted"}},
		"only loopback": {func(f *connectionFacts) {
			f.Accepted = nil
			f.Site.Hook = func() string { return "127.0.0.1:9443" }
		}, StepConnected, StateWaiting, []string{"only this machine reaches", "retrial serve --webhook-listen 0.0.0.0"}},
		"quiet for long": {func(f *connectionFacts) { f.Accepted.Last = before(7 * time.Minute) }, StepConnected, StateFailed,
			[]string{"Nothing has arrived since 2026-11-20T11:53:00Z (7 min ago)"}},
		"refused since": {func(f *connectionFacts) {
			f.Refusals = []webhook.Refusal{refused("prod", webhook.ReasonCredential, before(time.Second))}
		}, StepConnected, StateFailed, []string{"An apiserver of it, at 10.0.0.9, was turned away just now: told", "rotate prod"}},
		"refused before": {func(f *connectionFacts) {
			f.Refusals = []webhook.Refusal{refused("prod", webhook.ReasonCredential, before(time.Minute))}
		}, StepConnected, StateDone, nil},
		"somebody else's": {func(f *connectionFacts) {
			f.Refusals = []webhook.Refusal{refused("", webhook.ReasonUnknownAuthority, before(time.Second))}
		}, StepConnected, StateDone, nil},
		"perhaps its own": {func(f *connectionFacts) {
			f.Accepted, f.Refusals = nil, []webhook.Refusal{refused("", webhook.ReasonUnknownAuthority, before(30*time.Second))}
		}, StepConnected, StateFailed, []string{"A client at 10.0.0.9 was turned away 30 s ago: it presents a certificate from " +
			"another authority.", "retrial connect prod"}},
		"it does not trust us": {func(f *connectionFacts) {
			f.Accepted, f.Refusals = nil, []webhook.Refusal{refused("", webhook.ReasonNotTrusted, before(30*time.Second))}
		}, StepConnected, StateFailed, []string{"A client at 10.0.0.9 does not accept the receiver's certificate, 30 s ago.",
			"names localhost, retrial.example", "--webhook-advertise HOST"}},
		"its clock or time": {func(f *connectionFacts) {
			f.Accepted, f.Refusals = nil, []webhook.Refusal{refused("", webhook.ReasonExpired, before(30*time.Second))}
		}, StepConnected, StateFailed, []string{"expired, or not valid yet", "clocks"}},
		"plain HTTP": {func(f *connectionFacts) {
			f.Accepted, f.Refusals = nil, []webhook.Refusal{refused("", webhook.ReasonNotTLS, before(30*time.Second))}
		}, StepConnected, StateFailed, []string{"plain HTTP", "https://"}},
		"a wrong path": {func(f *connectionFacts) {
			f.Refusals = []webhook.Refusal{refused("prod", webhook.ReasonPath, now)}
		}, StepConnected, StateFailed, []string{"unchanged"}},
		"pushed back": {func(f *connectionFacts) { f.Refusals = []webhook.Refusal{refused("prod", "full", now)} }, StepConnected,
			StateFailed, []string{"was turned away just now: told"}},
		"TLS of old": {func(f *connectionFacts) {
			f.Accepted = nil
			f.Refusals = []webhook.Refusal{refused("", webhook.ReasonHandshake, now)}
		}, StepConnected, StateFailed, []string{"the TLS handshake failed: told"}},

		"events": {func(*connectionFacts) {}, StepFirstEvent, StateDone,
			[]string{"1,200 events stored, the newest of this minute."}},
		"one of long ago": {func(f *connectionFacts) { f.Stored.Events, f.Stored.Last = 1, before(72*time.Hour) },
			StepFirstEvent, StateDone, []string{"1 event stored, the newest on 2026-11-17."}},
		"accepted, not kept": {func(f *connectionFacts) { f.Stored = queries.Cluster{} }, StepFirstEvent, StateWaiting,
			[]string{"1,200 events accepted, not stored yet"}},
		"posts without any": {func(f *connectionFacts) { f.Stored, f.Accepted.Events = queries.Cluster{}, 0 }, StepFirstEvent,
			StateWaiting, []string{"has sent no event yet", "kubectl get namespaces"}},
		"none": {func(f *connectionFacts) { f.Stored, f.Accepted = queries.Cluster{}, nil }, StepFirstEvent,
			StateWaiting, []string{"There is none yet."}},

		"state": {func(*connectionFacts) {}, StepState, StateDone, []string{"355 roles and bindings are known."}},
		"contents unknown": {func(f *connectionFacts) { f.State.UnknownObjects = 3 }, StepState, StateDone,
			[]string{"of 3 the content is not", "RequestResponse", "retrial import --cluster prod"}},
		"no state": {func(f *connectionFacts) { f.State = stateFacts{UnknownKinds: rbacKinds} }, StepState,
			StateWaiting, []string{"It is not known which ClusterRoles,", "kubectl get clusterroles,",
				"retrial import --cluster prod --state state.json --data-dir /srv/retrial"}},
		"not listed yet": {func(f *connectionFacts) { f.State.UnknownKinds, f.Watched = []string{"Roles"}, true }, StepState,
			StateWaiting, []string{"The watch has not listed all of it yet: Roles.", "watch-rbac.yaml"}},

		"coverage": {func(*connectionFacts) {}, StepCoverage, StateDone,
			[]string{"Of 1,000 requests in the newest hour 98.0 % match, 0.2 % drift, 1.8 % are indeterminate."}},
		"nothing judged": {func(f *connectionFacts) { f.Shares = []queries.Share{share("not_judged", "", 7)} }, StepCoverage,
			StateWaiting, []string{"None has been judged yet."}},
		"state is wanted": {func(f *connectionFacts) {
			f.Shares = []queries.Share{share("match", "", 80), share("indeterminate", verdict.ClassNoState, 20)}
		}, StepCoverage, StateWaiting, []string{"20.0 % are indeterminate", "retrial import --cluster prod"}},
		"nodes alone wait": {func(f *connectionFacts) {
			f.Shares = []queries.Share{share("match", "", 50), share("indeterminate", verdict.ClassNodeGraph, 50)}
		}, StepCoverage, StateDone, []string{"50.0 % are indeterminate"}},
		"drift": {func(f *connectionFacts) {
			f.Shares = []queries.Share{share("match", "", 50), share("drift", "unexplained-reason", 50)}
		}, StepCoverage, StateDone, []string{"50.0 % drift", "another cluster or time"}},

		"followed": {func(*connectionFacts) {}, StepFollowed, StateDone, []string{"5 posts from 10.0.0.9, the last 20 s ago."}},
		"a follower that went": {func(f *connectionFacts) { f.Followed.Last = before(20 * time.Minute) }, StepFollowed, StateFailed,
			[]string{"has posted nothing since 2026-11-20T11:40:00Z (20 min ago)", "systemctl status retrial-follow"}},
		"one of two is followed": {func(f *connectionFacts) { f.Unfollowed = []string{"b"} }, StepFollowed, StateFailed,
			[]string{"nothing was posted from that of b: a batch that its webhook drops", "systemctl status retrial-follow"}},
		"nobody follows": {func(f *connectionFacts) { f.Followed = nil }, StepFollowed, StateWaiting,
			[]string{"since the server started, 60 min ago", "a batch that the webhook drops would be lost for good",
				"retrial import --follow --webhook-config"}},
		"a log alone": {func(f *connectionFacts) { f.Accepted = nil }, StepConnected, StateWaiting,
			[]string{"only from its audit log"}},

		"counted": {func(*connectionFacts) {}, StepCounted, StateDone, []string{"The counters of 1 apiserver are read."}},
		"not counted": {func(f *connectionFacts) { f.Site.Config.Completeness.Scrape = nil }, StepCounted, StateWaiting,
			[]string{"The apiservers' counters are not read", "retrial cluster scrape prod --url https://ADDRESS:6443",
				"--data-dir /srv/retrial"}},
		"never read": {func(f *connectionFacts) { f.Site.Metrics = read(time.Unix(0, 0)) }, StepCounted, StateWaiting,
			[]string{"Never read: the counters of the apiserver.", "the right to get /metrics"}},
		"read long ago": {func(f *connectionFacts) { f.Site.Metrics = read(before(time.Hour)) }, StepCounted, StateFailed,
			[]string{"The counters of the apiserver were not read in the last 5m0s.", "its token expired", "retrial cluster scrape prod"}},
		"about to be": {func(f *connectionFacts) { f.Site.Metrics = nil }, StepCounted, StateWaiting,
			[]string{"The server has not read them yet."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := connected()
			tc.change(&f)
			for _, s := range f.Steps() {
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
				if s.State == StateFailed && s.Todo == "" && tc.step == StepConnected && !strings.Contains(s.Text, "told") {
					t.Errorf("nothing to do: %s", s.Text)
				}
			}
		})
	}
	f := connected()
	var ids []string
	for _, s := range f.Steps() {
		ids = append(ids, s.ID)
		if s.State != StateDone || s.Title == "" || s.Todo != "" {
			t.Errorf("a connected cluster: %+v", s)
		}
	}
	if got := strings.Join(ids, " "); got != "registered connected first-event state coverage followed counted" {
		t.Errorf("the steps are %s", got)
	}
}

func TestSize(t *testing.T) {
	if got := fmt.Sprint(Size(512), Size(2<<30)); got != "512 B 2.0 GiB" && got != "512 B2.0 GiB" {
		t.Errorf("sizes %q", got)
	}
}
