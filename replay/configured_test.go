package replay

import (
	"fmt"
	"sync"
	"testing"

	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
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
	c := chains{plain: &configured{chain: authz.New(nil), text: "plain"}}
	one, twin, other := chainConfig("d", config.RBAC), chainConfig("d", config.RBAC), chainConfig("", config.AlwaysDeny)
	first := c.of(one, nil, ";lag=1s")
	if first.text != "authorizers=rbac;lag=1s;apiserver=d" || c.of(one, nil, "") != first || c.of(twin, nil, "").chain != first.chain {
		t.Errorf("%q is compiled again", first.text)
	}
	if c.of(other, nil, "").chain == first.chain || c.of(chainConfig("", config.AlwaysDeny), nil, "").chain == c.of(other, nil, "").chain {
		t.Error("a configuration without a digest has another's chain")
	}
	if got := c.of(nil, nil, ""); got != c.plain {
		t.Errorf("nothing known: %q", got.text)
	}
	aggregated := chainConfig("a")
	aggregated.Authorization.Delegated = true
	if c.of(aggregated, one, "").chain == c.of(aggregated, other, "").chain || !c.of(aggregated, one, "").chain.Delegated() {
		t.Error("a delegating server does not depend on its kube-apiserver")
	}
	if c.of(one, other, "") != first {
		t.Error("a kube-apiserver depends on another")
	}
}

// TestConfigurationsAreBounded: many come and go, from many goroutines; the newest stay.
func TestConfigurationsAreBounded(t *testing.T) {
	c := chains{plain: &configured{}}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range maxConfigured {
				cfg := chainConfig(fmt.Sprint(g, "-", i), config.RBAC)
				if c.of(cfg, nil, "").cfg != cfg {
					t.Errorf("goroutine %d: another configuration", g)
				}
			}
		})
	}
	all.Wait()
	if n := len(*c.known.Load()); n != maxConfigured {
		t.Errorf("%d are kept", n)
	}
}
