package deploy

import _ "embed"

// AuditPolicy is the audit policy for kube-apiserver's --audit-policy-file, with comments:
// what Retrial needs to see, and nothing at a higher level than that.
//
//go:embed audit-policy.yaml
var AuditPolicy []byte

// WatchRBAC is the manifest of the account that lists and watches what requests are judged
// by, and nothing else.
//
//go:embed watch-rbac.yaml
var WatchRBAC []byte
