package graph_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// at returns a moment of the tests' scale: seconds.
func at(s int) time.Time { return time.Unix(int64(s), 0) }

func sec(s int) int64 { return at(s).UnixNano() }

// step returns a step that became effective at one moment exactly.
func step(s int, k graph.Known, c *graph.Content) graph.Step {
	return graph.Step{NotBefore: sec(s), NotAfter: sec(s), Known: k, UID: "u", Content: c}
}

// from returns the life of an object that came at s and stays.
func from(s int, c *graph.Content) []graph.Step {
	return []graph.Step{step(s, graph.Present, c)}
}

// known returns a graph of which every kind is completely known from the beginning.
func known() *graph.Graph {
	g := graph.New()
	for _, k := range []graph.Kind{graph.Pod, graph.Volume, graph.Attachment, graph.Slice, graph.CertificateRequest} {
		g.SetScope(k, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
	}
	return g
}

func podOf(t *testing.T, object string) *graph.Content {
	t.Helper()
	c, err := graph.PodContent([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func volumeOf(t *testing.T, object string) *graph.Content {
	t.Helper()
	c, err := graph.VolumeContent([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// question is "group/resource namespace name" of a request.
type question struct{ group, resource, namespace, name string }

func (q question) String() string {
	return fmt.Sprintf("%s %s/%s", q.resource, q.namespace, q.name)
}

const busyPod = `{"metadata":{"name":"p","namespace":"d"},"spec":{"nodeName":"n1","serviceAccountName":"sa",
	"imagePullSecrets":[{"name":"pull"}],
	"initContainers":[{"envFrom":[{"secretRef":{"name":"init-all"}}]}],
	"containers":[{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"env","key":"k"}}},{"name":"B","value":"x"},
		{"name":"C","valueFrom":{"configMapKeyRef":{"name":"env","key":"k"}}}],"envFrom":[{"configMapRef":{"name":"all"}}]}],
	"ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"debug"}}]}],
	"volumes":[
		{"name":"s","secret":{"secretName":"vol"}},
		{"name":"m","configMap":{"name":"vol"}},
		{"name":"t","projected":{"sources":[{"secret":{"name":"projected"}},{"configMap":{"name":"kube-root-ca.crt"}},{"serviceAccountToken":{"path":"token"}}]}},
		{"name":"c","csi":{"driver":"x","nodePublishSecretRef":{"name":"csi"}}},
		{"name":"az","azureFile":{"secretName":"azure","shareName":"s"}},
		{"name":"d","persistentVolumeClaim":{"claimName":"data"}},
		{"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}],
	"resourceClaims":[{"name":"gpu","resourceClaimName":"gpus"},{"name":"made","resourceClaimTemplateName":"t"},{"name":"none","resourceClaimTemplateName":"t"}]},
	"status":{"resourceClaimStatuses":[{"name":"made","resourceClaimName":"p-made-x"},{"name":"none"}],
		"extendedResourceClaimStatus":{"resourceClaimName":"p-extended"}}}`

func TestPathsOfAPod(t *testing.T) {
	g := known()
	g.Set(graph.Object{Kind: graph.Pod, Namespace: "d", Name: "p"}, from(10, podOf(t, busyPod)))
	g.Set(graph.Object{Kind: graph.Volume, Name: "pv"}, from(10, volumeOf(t, `{"spec":{"claimRef":{"namespace":"d","name":"data"},
		"csi":{"driver":"x","controllerPublishSecretRef":{"namespace":"k","name":"controller"},"controllerExpandSecretRef":{"namespace":"k","name":"grow"},
		"nodePublishSecretRef":{"namespace":"k","name":"publish"},"nodeStageSecretRef":{"namespace":"k","name":"stage"},"nodeExpandSecretRef":{"namespace":"k","name":"expand"}}}}`)))
	g.Set(graph.Object{Kind: graph.Volume, Name: "free"}, from(10, volumeOf(t, `{"spec":{"cephfs":{"secretRef":{"namespace":"k",`+
		`"name":"free"}}}}`)))
	g.Set(graph.Object{Kind: graph.Attachment, Name: "va"}, from(10, &graph.Content{Node: "n1"}))
	g.Set(graph.Object{Kind: graph.Slice, Name: "slice"}, from(10, &graph.Content{Node: "n1"}))
	g.Set(graph.Object{Kind: graph.Slice, Name: "network"}, from(10, &graph.Content{}))
	g.Set(graph.Object{Kind: graph.CertificateRequest, Namespace: "d", Name: "pcr"}, from(10, &graph.Content{Node: "n1"}))

	related := []question{
		{"", "pods", "d", "p"}, {"", "serviceaccounts", "d", "sa"},
		{"", "secrets", "d", "pull"}, {"", "secrets", "d", "init-all"}, {"", "secrets", "d", "env"}, {"", "secrets", "d", "debug"},
		{"", "secrets", "d", "vol"}, {"", "secrets", "d", "projected"}, {"", "secrets", "d", "csi"}, {"", "secrets", "d", "azure"},
		{"", "configmaps", "d", "env"}, {"", "configmaps", "d", "all"}, {"", "configmaps", "d", "vol"}, {"", "configmaps", "d",
			"kube-root-ca.crt"},
		{"", "persistentvolumeclaims", "d", "data"}, {"", "persistentvolumeclaims", "d", "p-scratch"},
		{"resource.k8s.io", "resourceclaims", "d", "gpus"}, {"resource.k8s.io", "resourceclaims", "d", "p-made-x"}, {"resource.k8s.io",
			"resourceclaims", "d", "p-extended"},
		{"", "persistentvolumes", "", "pv"},
		{"", "secrets", "k", "publish"}, {"", "secrets", "k", "stage"}, {"", "secrets", "k", "expand"},
		{"storage.k8s.io", "volumeattachments", "", "va"}, {"resource.k8s.io", "resourceslices", "", "slice"},
		{"certificates.k8s.io", "podcertificaterequests", "d", "pcr"},
	}
	for _, q := range related {
		if got := g.Related(at(10), "n1", q.group, q.resource, q.namespace, q.name); got != graph.Present {
			t.Errorf("%v: %v, want present", q, got)
		}
		for _, node := range []string{"n2", "", "d"} {
			if got := g.Related(at(10), node, q.group, q.resource, q.namespace, q.name); got != graph.Absent {
				t.Errorf("%v from node %q: %v, want absent", q, node, got)
			}
		}
		if got := g.Related(at(9), "n1", q.group, q.resource, q.namespace, q.name); got != graph.Absent {
			t.Errorf("%v before the pod: %v, want absent", q, got)
		}
		if got := g.Related(at(10), "n1", q.group, q.resource, "other", q.name); got != graph.Absent {
			t.Errorf("%v in another namespace: %v, want absent", q, got)
		}
	}
	for _, q := range []question{
		{"", "secrets", "k", "controller"}, {"", "secrets", "k", "grow"}, {"", "secrets", "k", "free"}, {"", "persistentvolumes", "",
			"free"},
		{"", "secrets", "d", "publish"}, {"", "secrets", "d", "sa"}, {"", "configmaps", "d", "pull"}, {"", "secrets", "d", ""},
		{"resource.k8s.io", "resourceclaims", "d", "none"}, {"resource.k8s.io", "resourceslices", "", "network"}, {"", "pods", "d", "q"},
	} {
		if got := g.Related(at(10), "n1", q.group, q.resource, q.namespace, q.name); got != graph.Absent {
			t.Errorf("%v: %v, want absent", q, got)
		}
	}
	if got := g.Related(at(10), "n1", "", "endpoints", "d", "x"); got != graph.Unknown {
		t.Errorf("a resource the graph has no paths from: %v", got)
	}
}

// nano is a duration on the scale of the model.
func nano(n int64) time.Duration { return time.Duration(n) }
