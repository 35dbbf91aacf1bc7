// Package deploy holds the files that install Retrial and connect clusters to it; its tests parse
// every one of them strictly, and compare them with the code that they describe.
//
//	audit-policy.yaml  for kube-apiserver's --audit-policy-file; retrial connect writes it
//	audit-policy-patch-metadata.yaml  the same without bodies of PATCH, beside list and watch
//	metrics-rbac.yaml  the account that reads kube-apiservers' counters
//	watch-rbac.yaml    the account that follows a cluster
//	Containerfile      the image
//	serve.yaml         one pod with everything embedded, for evaluation
//	ci                 what pipelines of GitHub and GitLab ask of a change of roles and bindings
//	kubectl            the plugin's manifest for krew, and how kubectl completes it
//	scale-out.yaml     pods that receive and pods that judge, beside a Kafka and a ClickHouse
package deploy

import (
	_ "embed"
)

// AuditPolicy is the audit policy for kube-apiserver's --audit-policy-file, with comments:
// what Retrial needs to see, and nothing at a higher level than that.
//
//go:embed audit-policy.yaml
var AuditPolicy []byte

// AuditPolicyPatchMetadata is the audit policy without bodies of PATCH, for clusters that are
// followed by list and watch.
//
//go:embed audit-policy-patch-metadata.yaml
var AuditPolicyPatchMetadata []byte

// MetricsRBAC is the manifest of the account that reads kube-apiservers' counters, and nothing
// else.
//
//go:embed metrics-rbac.yaml
var MetricsRBAC []byte

// WatchRBAC is the manifest of the account that lists and watches what requests are judged
// by, and nothing else.
//
//go:embed watch-rbac.yaml
var WatchRBAC []byte
