package deploy

import (
	"bytes"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestAuditPolicy loads the policy as kube-apiserver does and asks which level requests get.
func TestAuditPolicy(t *testing.T) {
	p, err := policy.LoadPolicyFromBytes(AuditPolicy)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.NewPolicyRuleEvaluator(p)
	anonymous := &user.DefaultInfo{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{"system:authenticated"}}
	node := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	resource := func(verb, group, resource, subresource string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{User: jane, Verb: verb, APIGroup: group, APIVersion: "v1", Resource: resource,
			Subresource: subresource, Namespace: "n", ResourceRequest: true}
	}
	path := func(who user.Info, verb, path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{User: who, Verb: verb, Path: path}
	}
	const rbac = "rbac.authorization.k8s.io"
	for name, tc := range map[string]struct {
		of   authorizer.AttributesRecord
		want audit.Level
	}{
		"a role is created":            {resource("create", rbac, "roles", ""), audit.LevelRequestResponse},
		"a binding is patched":         {resource("patch", rbac, "clusterrolebindings", ""), audit.LevelRequestResponse},
		"bindings are deleted at once": {resource("deletecollection", rbac, "rolebindings", ""), audit.LevelRequestResponse},
		"roles are read":               {resource("list", rbac, "clusterroles", ""), audit.LevelMetadata},
		"a namespace is created":       {resource("create", "", "namespaces", ""), audit.LevelRequestResponse},
		"a namespace is finalized":     {resource("update", "", "namespaces", "finalize"), audit.LevelRequestResponse},
		"a service account is deleted": {resource("delete", "", "serviceaccounts", ""), audit.LevelRequestResponse},
		"a token is requested":         {resource("create", "", "serviceaccounts", "token"), audit.LevelMetadata},
		"a token is reviewed":          {resource("create", "authentication.k8s.io", "tokenreviews", ""), audit.LevelMetadata},
		"a Secret is read":             {resource("get", "", "secrets", ""), audit.LevelMetadata},
		"a Secret is written":          {resource("update", "", "secrets", ""), audit.LevelMetadata},
		"a ConfigMap is written":       {resource("update", "", "configmaps", ""), audit.LevelMetadata},
		"a CSR is approved": {resource("update", "certificates.k8s.io", "certificatesigningrequests", "approval"),
			audit.LevelRequestResponse},
		"a CSR is read": {resource("get", "certificates.k8s.io", "certificatesigningrequests", ""),
			audit.LevelMetadata},
		"a pod is created":               {resource("create", "", "pods", ""), audit.LevelRequestResponse},
		"a pod is bound":                 {resource("create", "", "pods", "binding"), audit.LevelRequestResponse},
		"a pod is deleted":               {resource("delete", "", "pods", ""), audit.LevelRequestResponse},
		"a pod's status is written":      {resource("patch", "", "pods", "status"), audit.LevelMetadata},
		"a pod is patched":               {resource("patch", "", "pods", ""), audit.LevelMetadata},
		"a debugging container is added": {resource("patch", "", "pods", "ephemeralcontainers"), audit.LevelRequestResponse},
		"a node's status is written":     {resource("patch", "", "nodes", "status"), audit.LevelMetadata},
		"a volume is claimed":            {resource("update", "", "persistentvolumes", ""), audit.LevelRequestResponse},
		"a volume is attached": {resource("create", "storage.k8s.io", "volumeattachments", ""),
			audit.LevelRequestResponse},
		"a command is run in a pod": {resource("create", "", "pods", "exec"), audit.LevelMetadata},
		"an access review": {resource("create", "authorization.k8s.io", "selfsubjectaccessreviews", ""),
			audit.LevelRequestResponse},
		"an aggregated or unknown API":          {resource("get", "metrics.k8s.io", "pods", ""), audit.LevelMetadata},
		"a lease is renewed":                    {resource("update", "coordination.k8s.io", "leases", ""), audit.LevelMetadata},
		"a probe without credentials":           {path(anonymous, "get", "/readyz"), audit.LevelNone},
		"a single check without credentials":    {path(anonymous, "get", "/livez/etcd"), audit.LevelNone},
		"a probe with credentials":              {path(jane, "get", "/readyz"), audit.LevelMetadata},
		"anonymous, a path that looks like one": {path(anonymous, "get", "/readyzz"), audit.LevelMetadata},
		"anonymous, anything else":              {path(anonymous, "get", "/api"), audit.LevelMetadata},
		"anonymous, metrics":                    {path(anonymous, "get", "/metrics"), audit.LevelMetadata},
		"a failed login":                        {authorizer.AttributesRecord{Verb: "get", Path: "/api"}, audit.LevelMetadata},
		"a failed login on a probe's path":      {authorizer.AttributesRecord{Verb: "get", Path: "/livez"}, audit.LevelMetadata},
		"a kubelet":                             {path(node, "get", "/apis"), audit.LevelMetadata},
	} {
		t.Run(name, func(t *testing.T) {
			got := rules.EvaluatePolicyRule(tc.of)
			if got.Level != tc.want {
				t.Errorf("level %s, want %s", got.Level, tc.want)
			}
			if len(got.OmitStages) != 1 || got.OmitStages[0] != audit.StageRequestReceived || !got.OmitManagedFields {
				t.Errorf("omitted stages %v, managed fields %v", got.OmitStages, got.OmitManagedFields)
			}
		})
	}
}

// TestAuditPolicyPatchMetadata: the variant is the shipped policy with one rule before all others,
// by which no PATCH has a body, whatever it is of.
func TestAuditPolicyPatchMetadata(t *testing.T) {
	_, shipped, _ := bytes.Cut(AuditPolicy, []byte("\nrules:\n"))
	_, rules, _ := bytes.Cut(AuditPolicyPatchMetadata, []byte("\nrules:\n"))
	first, rest, _ := bytes.Cut(rules, []byte("\n\n"))
	if len(rest) == 0 || !bytes.Equal(rest, shipped) {
		t.Error("behind its first rule it is not the shipped policy")
	}
	one, err := policy.LoadPolicyFromBytes([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n" + string(first) + "\n"))
	if err != nil || len(one.Rules) != 1 {
		t.Fatalf("its first rule: %v %s", err, first)
	}
	p, err := policy.LoadPolicyFromBytes(AuditPolicyPatchMetadata)
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(p)
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{"system:authenticated"}}
	for _, resource := range []string{"clusterrolebindings", "pods", "nodes", "configmaps"} {
		for verb, want := range map[string]audit.Level{"patch": audit.LevelMetadata, "create": ""} {
			a := authorizer.AttributesRecord{User: jane, Verb: verb, APIGroup: "rbac.authorization.k8s.io", APIVersion: "v1",
				Resource: resource, ResourceRequest: true}
			got := evaluator.EvaluatePolicyRule(a)
			if want != "" && got.Level != want || want == "" && got.Level != audit.LevelRequestResponse || len(got.OmitStages) != 1 ||
				!got.OmitManagedFields {
				t.Errorf("%s of %s: %+v", verb, resource, got)
			}
		}
	}
}
