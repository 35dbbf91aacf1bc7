package main

import (
	"strings"

	"github.com/retrial-io/retrial/deploy"
)

// auditPolicy is an audit policy that connect can write.
type auditPolicy struct {
	name, what string
	text       []byte
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
		{name: policyFull, what: "the log tells the state", text: deploy.AuditPolicy},
		{name: policyPatch, what: "no bodies of PATCH, which can cost a batch; needs --watch-clusters", text: deploy.AuditPolicyPatchMetadata, needsWatch: true},
	}
}

// policyNames lists the values of --policy.
func policyNames() []string {
	var names []string
	for _, p := range auditPolicies() {
		names = append(names, p.name)
	}
	return names
}

// policyHelp words the values of --policy.
func policyHelp() string {
	var words []string
	for _, p := range auditPolicies() {
		words = append(words, p.name+" ("+p.what+")")
	}
	return strings.Join(words, ", ")
}

// auditPolicyOf returns the policy of a name, false when there is none.
func auditPolicyOf(name string) (auditPolicy, bool) {
	for _, p := range auditPolicies() {
		if p.name == name {
			return p, true
		}
	}
	return auditPolicy{}, false
}
