package replay

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
)

func chainConfig(digest string, types ...config.AuthorizerType) *config.APIServer {
	cfg := &config.APIServer{Digest: digest}
	for _, typ := range types {
		cfg.Authorization.Authorizers = append(cfg.Authorization.Authorizers, config.Authorizer{Type: typ})
	}
	return cfg
}

// TestConfigurationsAreCompiledOnce: the same configuration, or another of the same digest,
// has the same chain; one without a digest is itself alone.
func TestConfigurationsAreCompiledOnce(t *testing.T) {
	c := New(Config{Lag: time.Second})
	one, twin, other := chainConfig("d", config.RBAC), chainConfig("d", config.RBAC), chainConfig("", config.AlwaysDeny)
	first := c.configured(one, nil, 0)
	if first.text != "authorizers=rbac;lag=1s;apiserver=d" || c.configured(one, nil, 0) != first ||
		c.configured(twin, nil, 0).chain != first.chain {
		t.Errorf("%q is compiled again", first.text)
	}
	if c.configured(other, nil, 0).chain == first.chain || c.configured(chainConfig("", config.AlwaysDeny), nil, 0).chain == c.configured(
		other, nil, 0).chain {
		t.Error("a configuration without a digest has another's chain")
	}
	if got := c.configured(nil, nil, 0); got.text != c.ConfigVersion() || got.rules != nil || got.given() != nil {
		t.Errorf("nothing known: %q", got.text)
	}
	learned := c.configured(nil, nil, 33)
	if learned.text != c.ConfigVersion()+";release=1.33" || learned.rules.Minor != 33 || learned.given() != nil ||
		c.configured(nil, nil, 33) != learned {
		t.Errorf("a version learned: %q, %+v", learned.text, learned.rules)
	}
	if is := c.configured(one, nil, 33); is.chain == first.chain || is.text != first.text+";release=1.33" || is.given().Minor != 33 ||
		one.Minor != 0 {
		t.Errorf("a version learned of a configured apiserver: %q", is.text)
	}
	aggregated := chainConfig("a")
	aggregated.Authorization.Delegated = true
	if c.configured(aggregated, one, 0).chain == c.configured(aggregated, other, 0).chain ||
		!c.configured(aggregated, one, 0).chain.Delegated() {
		t.Error("a delegating server does not depend on its kube-apiserver")
	}
	if c.configured(one, other, 0) != first {
		t.Error("a kube-apiserver depends on another")
	}
}

// TestConfigurationsAreBounded: many come and go, from many goroutines; the newest stay.
func TestConfigurationsAreBounded(t *testing.T) {
	c := New(Config{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range maxConfigured {
				cfg := chainConfig(fmt.Sprint(g, "-", i), config.RBAC)
				if c.configured(cfg, nil, 0).cfg != cfg {
					t.Errorf("goroutine %d: another configuration", g)
				}
			}
		})
	}
	all.Wait()
	if n := len(*c.chains.known.Load()); n != maxConfigured {
		t.Errorf("%d are kept", n)
	}
}

// TestConfigsAt: the configuration that is named for a time is the one verdicts of that time
// carry, and the name of all of them changes with any.
func TestConfigsAt(t *testing.T) {
	changed := time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC)
	h := &config.History{}
	h.Add(changed, chainConfig("d1", config.RBAC))
	h.Add(changed.Add(time.Hour), chainConfig("d2", config.Node, config.RBAC))
	wardle := &config.History{}
	delegating := chainConfig("w")
	delegating.Source, delegating.Authorization.Delegated = "wardle", true
	wardle.Add(time.Time{}, delegating)
	h.AddServer("wardle", wardle)
	eng := New(Config{Apiserver: func(cluster, server string) *config.History {
		if cluster != "c" {
			return nil
		}
		return h.Of(server)
	}})
	seen := map[string]bool{}
	for _, cluster := range []string{"c", "d"} {
		s := state.New(cluster)
		for _, server := range []string{"", "cp-1", "wardle"} {
			for _, after := range []time.Duration{-time.Hour, 0, time.Minute, time.Hour, 48 * time.Hour} {
				at := changed.Add(after)
				e := &event.Event{Server: server, Verb: "get", RequestURI: "/api/v1/pods", Stage: event.StageResponseComplete,
					User: event.User{Username: "ann"}, RequestReceivedTimestamp: at, StageTimestamp: at}
				got, want := eng.ConfigsAt(cluster, server, at)[0], eng.Replay(e, s).Config
				if got != want {
					t.Errorf("%s %q %s: %q, verdicts carry %q", cluster, server, after, got, want)
				}
				seen[got] = true
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d configurations: %v", len(seen), seen)
	}
	names := map[string]bool{eng.ConfigOf("c"): true, eng.ConfigOf("d"): true}
	wardle.Add(changed, chainConfig("w2"))
	names[eng.ConfigOf("c")] = true
	h.Add(changed, chainConfig("d3", config.RBAC))
	names[eng.ConfigOf("c")] = true
	names[New(Config{Lag: time.Second}).ConfigOf("d")] = true
	if len(names) != 5 || eng.ConfigOf("d") != New(Config{}).ConfigOf("d") {
		t.Errorf("%d names of 5 configurations", len(names))
	}
}
