package reason

import (
	"testing"
	"time"

	authznode "github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/release"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// TestNodeTexts asks every version for every kind of thing a node may want: whatever is answered is
// recognised.
func TestNodeTexts(t *testing.T) {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	resources := [][2]string{
		{"", "nodes"}, {"", "pods"}, {"", "secrets"}, {"", "configmaps"}, {"", "serviceaccounts"}, {"", "persistentvolumes"},
		{"", "persistentvolumeclaims"},
		{"storage.k8s.io", "volumeattachments"}, {"storage.k8s.io", "csinodes"}, {"coordination.k8s.io", "leases"},
		{"resource.k8s.io", "resourceslices"},
		{"resource.k8s.io", "resourceclaims"}, {"certificates.k8s.io", "podcertificaterequests"}, {"certificates.k8s.io",
			"clustertrustbundles"},
	}
	said := map[string]bool{}
	newest := release.All()[len(release.All())-1].Minor
	for i := range 2 * (newest - 19) {
		minor := 20 + i/2
		rules := authznode.RulesOf(&config.APIServer{Minor: minor, Gates: map[string]bool{"PodCertificateRequest": true,
			"ClusterTrustBundle": true, "CSIVolumeHealth": i%2 == 1}})
		for _, user := range []string{"system:node:n", "system:node:"} {
			for _, r := range resources {
				for _, verb := range verbs {
					for _, sub := range []string{"", "status", "token"} {
						for _, name := range []string{"", "n", "x"} {
							for _, namespace := range []string{"", "kube-node-lease"} {
								a := verdict.Attributes{ResourceRequest: true, Verb: verb, APIGroup: r[0], Resource: r[1], Subresource: sub,
									Name: name, Namespace: namespace}
								said[rules.Authorize(user, &a, nobody{}, time.Time{}).Reason] = true
							}
						}
					}
				}
			}
		}
	}
	delete(said, "")
	if len(said) < len(nodeTexts)-1 {
		t.Errorf("%d texts met, %d are known", len(said), len(nodeTexts))
	}
	for text := range said {
		if !node(text) {
			t.Errorf("not recognised: %q", text)
		}
	}
	for _, text := range []string{"", "EKS Access Policy: allowed by ClusterAdmin", "scopes [user:info] prevent this action",
		"node 'x' is cordoned"} {
		if node(text) {
			t.Errorf("%q is taken for a text of the node authorizer", text)
		}
	}
}

// nobody runs on any node.
type nobody struct{}

func (nobody) Related(time.Time, string, string, string, string, string) authznode.Known {
	return graph.Absent
}
