package doctor

import "github.com/retrial-io/retrial/deploy"

// Policy is an audit policy that connect can write.
type Policy struct {
	choice
	text []byte
	// needsWatch: the policy leaves out of the log what the replica then has to learn by list and
	// watch.
	needsWatch bool
}

// Names of the audit policies there are.
const (
	PolicyFull  = "full"
	policyPatch = "patch-metadata"
)

// Policies returns the values of --policy.
func Policies() []Policy {
	return []Policy{
		{choice: choice{PolicyFull, "the log carries the state"}, text: deploy.AuditPolicy},
		{choice: choice{policyPatch, "no bodies of PATCH, one of which can lose a batch; needs --watch-clusters"},
			text: deploy.AuditPolicyPatchMetadata, needsWatch: true},
	}
}
