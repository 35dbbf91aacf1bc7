package node

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"

	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// TestMain keeps the real graph's log lines away and looks for goroutines it left behind.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// short is the number of requests of a run that comes with every test run.
const short = 60_000

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestNode holds the replica's node authorizer and graph against the real ones.
func TestNode(t *testing.T) {
	seed := number(t, "ORACLE_SEED", 1)
	res := Run(Config{Requests: number(t, "ORACLE_NODE", short), Seed: seed})
	disagreements := 0
	if res.Disagreement != "" {
		disagreements = 1
		t.Error(res.Disagreement)
	}
	for _, reason := range slices.Sorted(maps.Keys(res.Reasons)) {
		t.Logf("%9d %s", res.Reasons[reason], reason)
	}
	t.Logf("oracle node requests=%d allowed=%d writes=%d disagreements=%d seed=%d", res.Requests, res.Allowed, res.Writes,
		disagreements, seed)
	if res.Disagreement == "" && (res.Allowed*10 < res.Requests || res.Allowed*10 > res.Requests*9) {
		t.Errorf("%d of %d requests are allowed: the requests ask nothing", res.Allowed, res.Requests)
	}
	// Every refusal the default gates can produce must have come up.
	for _, text := range []string{
		"(none)", "can only read resources of this type", "cannot read subresource", "can only read namespaced object of this type",
		"No Object name found",
		"no relationship found between node '<n>' and this object", "can only get individual resources of this type",
		"cannot get subresource",
		"can only get/update/patch this type", "can only create tokens for individual service accounts",
		"can only create token subresource of serviceaccount",
		"can only get, create, update, patch, or delete a node lease", `can only access leases in the "kube-node-lease" system namespace`,
		"can only access node lease with the same name as the requesting node", "can only get, create, update, patch, or delete a CSINode",
		"cannot authorize CSINode subresources", "can only access CSINode with the same name as the requesting node",
		"can only list/watch/deletecollection resourceslices with nodeName field selector", "cannot authorize ResourceSlice subresources",
		"only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
		"node '<n>' cannot read all nodes, only its own Node object", "node '<n>' cannot read '<o>', …",
		"can only list/watch pods with spec.nodeName field selector", `unknown node for user "system:node:"`,
	} {
		if res.Reasons[text] == 0 {
			t.Errorf("no request was refused with %q", text)
		}
	}
}

// TestState does so with the state in between, which the facts reach as writes of a log.
func TestState(t *testing.T) {
	seed := number(t, "ORACLE_SEED", 3)
	res := Run(Config{Requests: number(t, "ORACLE_NODE", short), Seed: seed, Ours: Ours{State: true}})
	if res.Disagreement != "" {
		t.Fatal(res.Disagreement)
	}
	t.Logf("oracle node through state: requests=%d allowed=%d writes=%d disagreements=0 seed=%d", res.Requests, res.Allowed,
		res.Writes, seed)
	if res.Allowed*10 < res.Requests {
		t.Errorf("%d of %d requests are allowed", res.Allowed, res.Requests)
	}
}

// TestGates does so with other feature gates. Older releases have recordings of their own, see
// rbacindex/oracle/releases.
func TestGates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		gates  map[string]bool
		reason string // must come up
	}{
		{"pod certificates", map[string]bool{"PodCertificateRequest": true, "ClusterTrustBundle": true},
			"can only list/watch podcertificaterequests with nodeName field selector"},
		{"no service accounts", map[string]bool{"KubeletServiceAccountTokenForCredentialProviders": false},
			"not allowed to get service accounts"},
		{"service accounts by the other gate", map[string]bool{"KubeletServiceAccountTokenForCredentialProviders": false,
			"PodCertificateRequest": true}, "nodes may not access the status subresource of PodCertificateRequests"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := &config.APIServer{Minor: 36, Gates: tc.gates}
			overrides := featuregatetesting.FeatureOverrides{}
			for _, f := range slices.Sorted(maps.Keys(utilfeature.DefaultMutableFeatureGate.GetAll())) {
				if v, ok := tc.gates[string(f)]; ok {
					overrides[f] = v
				}
			}
			if len(overrides) != len(tc.gates) {
				t.Fatalf("gates %v: Kubernetes knows %v", tc.gates, overrides)
			}
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, overrides)
			res := Run(Config{Requests: 20_000, Seed: 5, Ours: Ours{Config: cfg}})
			if res.Disagreement != "" {
				t.Fatal(res.Disagreement)
			}
			if res.Reasons[tc.reason] == 0 {
				t.Errorf("no request was refused with %q", tc.reason)
			}
		})
	}
}

// edit returns a reader of objects that sees them changed.
func edit(f func(o map[string]any)) func(graph.Kind, []byte) (graph.Content, error) {
	return func(k graph.Kind, raw []byte) (graph.Content, error) {
		var o map[string]any
		if err := json.Unmarshal(raw, &o); err != nil {
			return graph.Content{}, err
		}
		f(o)
		changed, err := json.Marshal(o)
		if err != nil {
			return graph.Content{}, err
		}
		return graph.ContentOf(k, changed)
	}
}

// TestFaultsAreCaught seeds the mistakes a replica could make: each must be found within the
// short run.
func TestFaultsAreCaught(t *testing.T) {
	rules := node.RulesOf(nil)
	asking := func(f func(a *verdict.Attributes)) Ours {
		return Ours{Authorize: func(user string, a *verdict.Attributes, g node.Graph, at time.Time) node.Answer {
			b := *a
			f(&b)
			return rules.Authorize(user, &b, g, at)
		}}
	}
	spec := func(o map[string]any) map[string]any {
		s, _ := o["spec"].(map[string]any)
		return s
	}
	for name, ours := range map[string]Ours{
		"mirror pods lead on": {Content: edit(func(o map[string]any) {
			delete(o["metadata"].(map[string]any),
				"annotations")
		})},
		"ephemeral containers are left out": {Content: edit(func(o map[string]any) { delete(spec(o), "ephemeralContainers") })},
		"init containers are left out":      {Content: edit(func(o map[string]any) { delete(spec(o), "initContainers") })},
		"pull secrets are left out":         {Content: edit(func(o map[string]any) { delete(spec(o), "imagePullSecrets") })},
		"claim statuses are left out":       {Content: edit(func(o map[string]any) { delete(o, "status") })},
		"controllers' secrets are kubelets'": {Content: edit(func(o map[string]any) {
			if csi, ok := spec(o)["csi"].(map[string]any); ok && csi["controllerPublishSecretRef"] != nil {
				csi["nodePublishSecretRef"] = csi["controllerPublishSecretRef"]
			}
		})},
		"generic ephemeral volumes are left out": {Content: edit(func(o map[string]any) {
			volumes, _ := spec(o)["volumes"].([]any)
			for _, v := range volumes {
				delete(v.(map[string]any), "ephemeral")
			}
		})},
		"every write refreshes": {Life: func(o graph.Object, life []graph.Step) []graph.Step {
			if c := life[len(life)-1].Content; c != nil && o.Kind == graph.Pod {
				c.Statuses = uint32(len(life))
			}
			return life
		}},
		"no update refreshes": {Life: func(_ graph.Object, life []graph.Step) []graph.Step {
			if n := len(life); n > 1 && life[n-1].Content != nil && life[n-2].Content != nil && life[n-2].Content.Node != "" &&
				life[n-1].UID == life[n-2].UID {
				*life[n-1].Content = *life[n-2].Content
			}
			return life
		}},
		"an end is missed": {Life: func(_ graph.Object, life []graph.Step) []graph.Step {
			if n := len(life); n > 5 && life[n-1].Known == graph.Absent {
				return life[:n-1]
			}
			return life
		}},
		"an end comes late": {Life: func(_ graph.Object, life []graph.Step) []graph.Step {
			if st := &life[len(life)-1]; st.Known == graph.Absent {
				st.NotBefore, st.NotAfter = st.NotBefore+2, st.NotAfter+2
			}
			return life
		}},
		"namespaces are mixed up": asking(func(a *verdict.Attributes) { a.Namespace = strings.Replace(a.Namespace, "ns1", "ns0", 1) }),
		"selectors are not read":  asking(func(a *verdict.Attributes) { a.FieldSelector = "" }),
		"a selector is read freely": asking(func(a *verdict.Attributes) {
			a.FieldSelector = strings.Replace(a.FieldSelector, "!=", "=", 1)
		}),
		"subresources are not read": asking(func(a *verdict.Attributes) { a.Subresource = "" }),
		"HEAD counts as a get":      asking(func(a *verdict.Attributes) { a.Verb = strings.ToLower(a.Verb) }),
		"groups are not told apart": asking(func(a *verdict.Attributes) { a.APIGroup = strings.TrimPrefix(a.APIGroup, "v1") }),
		"an old version's selectors": {Config: &config.APIServer{Minor: 33, Gates: map[string]bool{
			"AuthorizeNodeWithSelectors": false, "KubeletServiceAccountTokenForCredentialProviders": true,
		}}},
		"an old version's accounts": {Config: &config.APIServer{Minor: 32}},
		"a gate is on":              {Config: &config.APIServer{Gates: map[string]bool{"ClusterTrustBundle": true}}},
	} {
		t.Run(name, func(t *testing.T) {
			res := Run(Config{Requests: short, Seed: 1, Ours: ours})
			if res.Disagreement == "" {
				t.Fatal("not noticed")
			}
			t.Logf("after %d requests: %s", res.Requests, firstLine(res.Disagreement))
		})
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
