package main

import "github.com/retrial-io/retrial/deploy"

// auditPolicy is an audit policy that connect can write.
type auditPolicy struct {
	choice
	text []byte
	// needsWatch: it leaves out of the log what the replica has to learn from list and watch.
	needsWatch bool
}

const (
	policyFull  = "full"
	policyPatch = "patch-metadata"
)

// auditPolicies are the values of --policy.
func auditPolicies() []auditPolicy {
	return []auditPolicy{
		{choice: choice{policyFull, "the log tells the state"}, text: deploy.AuditPolicy},
		{choice: choice{policyPatch, "no bodies of PATCH, which can cost a batch; needs --watch-clusters"}, text: deploy.AuditPolicyPatchMetadata, needsWatch: true},
	}
}
