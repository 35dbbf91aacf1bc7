package node

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"strings"

	certsv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/retrial-io/retrial/verdict"
)

// Line is a line of a script: a new cluster, a write, or a request. Objects are in JSON that
// every release reads alike.
type Line struct {
	Cluster       bool            `json:",omitempty"` // everything before is over
	Kind          string          `json:",omitempty"` // of a write
	Before, After json.RawMessage `json:",omitempty"` // none where the object was not there
	*Request      `json:",omitempty"`
}

// Request is one request, as the authorizers see it.
type Request struct {
	User          string
	Groups        []string
	Verb          string
	APIGroup      string `json:",omitempty"`
	Resource      string `json:",omitempty"`
	Subresource   string `json:",omitempty"`
	Namespace     string `json:",omitempty"`
	Name          string `json:",omitempty"`
	Path          string `json:",omitempty"`
	FieldSelector string `json:",omitempty"`
}

// Script makes small clusters one after the other, each with requests of nodes, and of others
// between them, while it changes.
func Script(seed uint64, clusters, requests int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for n := range clusters {
			g := newGenerator(seed, uint64(n))
			g.plausible = true
			g.begin = min(g.begin, 60)
			if !yield(Line{Cluster: true}, nil) {
				return
			}
			for asked := 0; asked < requests; {
				for range 1 + g.begin {
					line, err := g.write()
					if line.Kind != "" && !yield(line, err) || err != nil {
						return
					}
				}
				g.begin = 0
				for range 1 + g.IntN(12) {
					q := g.request()
					if g.one(4) {
						q = g.stranger()
					}
					asked++
					if !yield(Line{Request: &Request{
						q.username, q.groups, q.a.Verb, q.a.APIGroup, q.a.Resource, q.a.Subresource, q.a.Namespace, q.a.Name, q.a.Path,
						q.a.FieldSelector,
					}}, nil) {
						return
					}
				}
			}
		}
	}
}

// write makes one change, or none.
func (g *generator) write() (Line, error) {
	before, after := g.change()
	if before == nil && after == nil {
		return Line{}, nil
	}
	// No apiserver creates a pod's claims for extended resources once it runs.
	if old, ok := before.(*corev1.Pod); ok && old.Spec.NodeName != "" {
		if pod, ok := after.(*corev1.Pod); ok && pod.UID == old.UID && old.Status.ExtendedResourceClaimStatus == nil {
			pod.Status.ExtendedResourceClaimStatus = nil
		}
	}
	g.now++
	shown := after
	if after == nil {
		shown = before
	}
	line := Line{}
	switch shown.(type) {
	case *corev1.Pod:
		line.Kind = "Pod"
	case *corev1.PersistentVolume:
		line.Kind = "PersistentVolume"
	case *storagev1.VolumeAttachment:
		line.Kind = "VolumeAttachment"
	case *resourcev1.ResourceSlice:
		line.Kind = "ResourceSlice"
	case *certsv1beta1.PodCertificateRequest:
		line.Kind = "PodCertificateRequest"
	default:
		return line, fmt.Errorf("no kind for %T", shown)
	}
	var err error
	if before != nil {
		if line.Before, err = bare(before); err != nil {
			return line, err
		}
	}
	if after != nil {
		line.After, err = bare(after)
	}
	return line, err
}

// bare returns an object without what no authorizer looks at. What older releases read elsewhere, a
// resource slice's node and the source of a pod's claim, is said in both places.
func bare(o any) (json.RawMessage, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	if slice, ok := o.(*resourcev1.ResourceSlice); ok && slice.Spec.NodeName != nil {
		fields["nodeName"] = *slice.Spec.NodeName
	}
	spec, _ := fields["spec"].(map[string]any)
	claims, _ := spec["resourceClaims"].([]any)
	for _, c := range claims {
		claim := c.(map[string]any)
		source := maps.Clone(claim)
		delete(source, "name")
		claim["source"] = source
	}
	return json.Marshal(fields)
}

// strangers are identities the bootstrap policy knows, and some it does not.
var strangers = []struct {
	name   string
	groups []string
}{
	{"system:kube-scheduler", nil}, {"system:kube-controller-manager", nil}, {"system:kube-proxy", nil}, {"system:volume-scheduler", nil},
	{"system:bootstrap:abcdef", []string{"system:bootstrappers"}}, {"monitor", []string{"system:monitoring"}}, {"alice", nil},
	{"node", []string{"system:nodes"}},
	account("attachdetach-controller"), account("certificate-controller"), account("clusterrole-aggregation-controller"),
	account("cronjob-controller"),
	account("daemon-set-controller"), account("deployment-controller"), account("disruption-controller"),
	account("endpointslice-controller"),
	account("expand-controller"), account("generic-garbage-collector"), account("horizontal-pod-autoscaler"), account("job-controller"),
	account("namespace-controller"), account("node-controller"), account("persistent-volume-binder"), account("pod-garbage-collector"),
	account("pvc-protection-controller"), account("replicaset-controller"), account("resource-claim-controller"),
	account("resourcequota-controller"),
	account("root-ca-cert-publisher"), account("service-account-controller"), account("statefulset-controller"),
	account("ttl-after-finished-controller"),
	account("validatingadmissionpolicy-status-controller"), account("storage-version-migrator-controller"), account("kube-dns"),
	account("default"),
}

func account(name string) (s struct {
	name   string
	groups []string
}) {
	s.name, s.groups = "system:serviceaccount:kube-system:"+name, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}
	return s
}

// strange are what strangers ask for besides what nodes do.
var strange = []struct{ group, resource string }{
	{"", "pods"}, {"", "pods/binding"}, {"", "pods/status"}, {"", "pods/eviction"}, {"", "nodes"}, {"", "nodes/proxy"},
	{"", "nodes/metrics"}, {"", "services"}, {"", "endpoints"},
	{"", "events"}, {"", "namespaces"}, {"", "secrets"}, {"", "configmaps"}, {"", "serviceaccounts"}, {"", "serviceaccounts/token"},
	{"", "replicationcontrollers"},
	{"", "persistentvolumes"}, {"", "persistentvolumeclaims"}, {"", "resourcequotas"}, {"apps", "deployments"}, {"apps", "replicasets"},
	{"apps", "replicasets/status"},
	{"apps", "statefulsets"}, {"apps", "daemonsets"}, {"batch", "jobs"}, {"batch", "jobs/finalizers"}, {"batch", "cronjobs/status"},
	{"autoscaling", "horizontalpodautoscalers"},
	{"policy", "poddisruptionbudgets"}, {"policy", "poddisruptionbudgets/status"}, {"discovery.k8s.io", "endpointslices"},
	{"events.k8s.io", "events"},
	{"coordination.k8s.io", "leases"}, {"coordination.k8s.io", "leasecandidates"}, {"storage.k8s.io", "csinodes"},
	{"storage.k8s.io", "csistoragecapacities"},
	{"storage.k8s.io", "volumeattributesclasses"}, {"resource.k8s.io", "resourceclaims"}, {"resource.k8s.io", "resourceclaims/binding"},
	{"resource.k8s.io", "resourceclaims/status"},
	{"resource.k8s.io", "resourceslices"}, {"resource.k8s.io", "deviceclasses"}, {"resource.k8s.io", "devicetaintrules"},
	{"scheduling.k8s.io", "priorityclasses"},
	{"scheduling.k8s.io", "workloads"}, {"scheduling.k8s.io", "podgroups"}, {"certificates.k8s.io", "certificatesigningrequests"},
	{"certificates.k8s.io", "certificatesigningrequests/nodeclient"}, {"certificates.k8s.io", "certificatesigningrequests/selfnodeclient"},
	{"certificates.k8s.io", "clustertrustbundles"}, {"certificates.k8s.io", "podcertificaterequests"}, {"certificates.k8s.io", "signers"},
	{"authentication.k8s.io", "tokenreviews"}, {"authentication.k8s.io", "selfsubjectreviews"}, {"authorization.k8s.io",
		"subjectaccessreviews"},
	{"authorization.k8s.io", "selfsubjectaccessreviews"}, {"rbac.authorization.k8s.io", "clusterroles"}, {"networking.k8s.io", "ingresses"},
	{"networking.k8s.io", "servicecidrs"}, {"networking.k8s.io", "ipaddresses"}, {"admissionregistration.k8s.io",
		"validatingadmissionpolicies"},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies/status"}, {"admissionregistration.k8s.io", "mutatingadmissionpolicies"},
	{"flowcontrol.apiserver.k8s.io", "flowschemas"}, {"internal.apiserver.k8s.io", "storageversions"}, {"storagemigration.k8s.io",
		"storageversionmigrations"},
}

// paths that the bootstrap policy speaks of, and some it does not.
var paths = []string{
	"/healthz", "/livez", "/livez/ping", "/readyz", "/metrics", "/metrics/slis", "/version", "/version/", "/api", "/api/v1", "/apis",
	"/apis/apps", "/openapi/v3",
	"/openid/v1/jwks", "/.well-known/openid-configuration", "/statusz", "/flagz", "/configz", "/logs", "/", "/secret",
}

// stranger makes a request of somebody who is not a node.
func (g *generator) stranger() asked {
	s := pick(g, strangers)
	q := asked{username: s.name, groups: append(append([]string{}, s.groups...), "system:authenticated")}
	if g.one(12) {
		q = asked{username: "system:anonymous", groups: []string{"system:unauthenticated"}}
	}
	if g.one(8) {
		q.a = verdict.Attributes{Verb: pick(g, []string{"get", "get", "head", "post"}), Path: pick(g, paths)}
		return q
	}
	r := pick(g, strange)
	q.a = verdict.Attributes{ResourceRequest: true, APIVersion: "v1", APIGroup: r.group, Verb: pick(g, allVerbs[:8])}
	q.a.Resource, q.a.Subresource, _ = strings.Cut(r.resource, "/")
	if g.one(2) {
		q.a.Namespace = pick(g, []string{"kube-system", "kube-public", "default", "kube-node-lease"})
	}
	if g.one(2) {
		q.a.Name = pick(g, []string{"x", "kube-scheduler", "kube-controller-manager", "extension-apiserver-authentication", "cluster-info",
			"kubernetes.io/kubelet-serving"})
	}
	return q
}
