package union

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/klog/v2"

	kube "k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// perChain is how many requests are put to one chain: what is compiled once is dear.
const perChain = 400

// TestMain silences Kubernetes' own line on every webhook that fails.
func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}) // panics
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// noPods is the graph of a cluster without pods, as Kubernetes' authorizer has it here.
type noPods struct{}

func (noPods) Related(time.Time, string, string, string, string, string) graph.Known {
	return graph.Absent
}

// alter makes a configuration wrong in one way; nil leaves it alone.
type alter func(*config.APIServer)

// compared counts what a run met.
type compared struct{ chains, requests, allowed, refused, failed, asked, skipped, reasons, joined int }

// run compares n requests and returns the first disagreement. Every request is put to
// Kubernetes twice: with webhooks that say nothing, when the whole answer must be ours, and
// with webhooks that answer anything, when what is certain must be.
func run(t *testing.T, n, seed uint64, wrong alter) (c compared, err error) {
	t.Helper()
	compiler := authorizationcel.NewDefaultCompiler()
	for lot := uint64(0); c.requests < int(n); lot++ {
		g := generator{rand.New(rand.NewPCG(seed, lot))}
		chain, lines, policy := g.chain(), g.abac(), g.policy()
		real := build(t, chain, lines, policy, compiler)
		history, _, err := config.ReadHistory(fstest.MapFS{
			"kube-apiserver.flags": {
				Data: []byte("--authorization-config=/etc/authz.yaml\n--authorization-policy-file=/etc/policy.jsonl\n")},
			"authz.yaml":   {Data: []byte(text(chain))},
			"policy.jsonl": {Data: []byte(lines)},
			"server.yaml":  {Data: []byte("kubernetesVersion: \"1.36\"\n")},
		})
		if err != nil {
			return c, fmt.Errorf("lot %d: %w in\n%s\n%s", lot, err, text(chain), lines)
		}
		cfg := history.At(time.Time{})
		if wrong != nil {
			wrong(cfg)
		}
		ours := authz.New(cfg)
		index, _ := rbacindex.Empty().Apply(policy...)
		m := &authz.Moment{View: &state.View{RBAC: index}, Graph: noPods{}}
		c.chains++
		for range perChain {
			u, a := g.user(), g.attributes()
			c.requests++
			if err := c.one(real, ours, m, &u, &a); err != nil {
				return c, fmt.Errorf("lot %d: %+v %+v: %w\nchain %s\nabac %s", lot, u, a, err, text(chain), lines)
			}
		}
	}
	return c, nil
}

// one compares one request.
func (c *compared) one(real *theirs, ours *authz.Chain, m *authz.Moment, u *event.User, a *verdict.Attributes) error {
	ans := ours.Authorize(u, a, m, nil)
	var wouldAsk []string
	for _, s := range ans.Steps() {
		switch s.Answer {
		case verdict.AnswerUnknown:
			wouldAsk = append(wouldAsk, s.Authorizer)
		case verdict.AnswerSkipped:
			c.skipped++
		}
	}
	c.asked += len(wouldAsk)

	decision, reason, err := ask(real, u, a, true)
	if ans.Decision != decision || !ans.Gives(reason, nil) {
		return fmt.Errorf("ours %s (%q) by %q, Kubernetes %s %q (%v)", ans.Decision, ans.Refusal(), ans.Authorizer, decision, reason, err)
	}
	if decision == verdict.DecisionForbid && ans.Gives(reason+"\nx", nil) || reason != "" && ans.Decision != verdict.DecisionError &&
		ans.Gives(reason[1:], nil) {
		return fmt.Errorf("a reason that is not Kubernetes' %q is taken for it", reason)
	}
	if !slices.Equal(real.calls, wouldAsk) {
		return fmt.Errorf("ours would ask %v, Kubernetes asked %v", wouldAsk, real.calls)
	}
	switch decision {
	case verdict.DecisionAllow:
		c.allowed++
	case verdict.DecisionForbid:
		c.refused++
		if reason != "" {
			c.reasons++
		}
		if slices.Contains([]byte(reason), '\n') {
			c.joined++
		}
	case verdict.DecisionError:
		c.failed++
		if !ans.CanFail() && !ans.Free() && ans.Decision != verdict.DecisionError {
			return fmt.Errorf("an error out of a chain that cannot fail")
		}
	}
	if !ans.Free() {
		return nil
	}
	decision, reason, _ = ask(real, u, a, false)
	if ans.Certain() != verdict.DecisionNone && ans.Certain() != decision {
		return fmt.Errorf("certainly %s, and Kubernetes %s %q", ans.Certain(), decision, reason)
	}
	if len(real.calls) > len(wouldAsk) || !slices.Equal(real.calls, wouldAsk[:len(real.calls)]) {
		return fmt.Errorf("ours would ask %v, Kubernetes asked %v", wouldAsk, real.calls)
	}
	return nil
}

// ask is Kubernetes' answer as the authorization filter records it.
func ask(real *theirs, u *event.User, a *verdict.Attributes, silent bool) (verdict.Decision, string, error) {
	real.calls, real.silent = nil, silent
	decision, reason, err := real.Authorize(context.Background(), record(u, a))
	switch {
	case decision == kube.DecisionAllow:
		return verdict.DecisionAllow, reason, err
	case err != nil:
		return verdict.DecisionError, reason, err
	}
	return verdict.DecisionForbid, reason, nil
}

// number reads a setting of the environment.
func number(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestUnion compares ORACLE_UNION generated requests (10000).
func TestUnion(t *testing.T) {
	n, seed := number(t, "ORACLE_UNION", 10_000), number(t, "ORACLE_SEED", 1)
	c, err := run(t, n, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.allowed < c.requests/10 || c.refused < c.requests/10 || c.failed == 0 || c.asked < c.requests/20 || c.skipped == 0 ||
		c.reasons < c.refused/10 || c.joined == 0 {
		t.Fatalf("the generator has become tame: %+v", c)
	}
	t.Logf("union comparisons=%d disagreements=0 seed=%d %+v", c.requests, seed, c)
}

// TestUnionFindsMistakes shows that the generated chains tell mistakes apart.
func TestUnionFindsMistakes(t *testing.T) {
	each := func(f func(*config.Authorizer)) alter {
		return func(c *config.APIServer) {
			for i := range c.Authorization.Authorizers {
				f(&c.Authorization.Authorizers[i])
			}
		}
	}
	hooks := func(f func(*config.WebhookOptions)) alter {
		return each(func(z *config.Authorizer) {
			if z.Webhook != nil {
				f(z.Webhook)
			}
		})
	}
	without := func(kind config.AuthorizerType) alter {
		return func(c *config.APIServer) {
			z := &c.Authorization
			z.Authorizers = slices.DeleteFunc(z.Authorizers, func(a config.Authorizer) bool { return a.Type == kind })
		}
	}
	for name, wrong := range map[string]alter{
		"the order is turned round":      func(c *config.APIServer) { slices.Reverse(c.Authorization.Authorizers) },
		"AlwaysDeny says nothing":        without(config.AlwaysDeny),
		"AlwaysAllow is not there":       without(config.AlwaysAllow),
		"ABAC says nothing":              without(config.ABAC),
		"Node says nothing":              without(config.Node),
		"RBAC says nothing":              without(config.RBAC),
		"a webhook is not there":         without(config.Webhook),
		"match conditions do not matter": hooks(func(w *config.WebhookOptions) { w.MatchConditions = nil }),
		"the first match condition decides": hooks(func(w *config.WebhookOptions) {
			w.MatchConditions = w.MatchConditions[:min(1, len(w.MatchConditions))]
		}),
		"a failure never refuses": hooks(func(w *config.WebhookOptions) {
			w.FailurePolicy = "NoOpinion"
		}),
		"a failure always refuses":   hooks(func(w *config.WebhookOptions) { w.FailurePolicy = "Deny" }),
		"reviews carry no selectors": func(c *config.APIServer) { c.Minor = 31 },
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := run(t, 40_000, 1, wrong); err == nil {
				t.Fatalf("%d requests do not tell it from the real rule", c.requests)
			}
		})
	}
}
