package doctor

import "github.com/retrial-io/retrial/deploy"

// Policy is an audit policy that connect can write.
type Policy struct {
	choice
	text []byte
	// needsWatch: it leaves out of the log what the replica has to learn from list and watch.
	needsWatch bool
}

// Names of the audit policies there are.
const (
	PolicyFull  = "full"
	policyPatch = "patch-metadata"
)

// Policies are the values of --policy.
func Policies() []Policy {
	return []Policy{
		{choice: choice{PolicyFull, "the log tells the state"}, text: deploy.AuditPolicy},
		{choice: choice{policyPatch, "no bodies of PATCH, which can cost a batch; needs --watch-clusters"},
			text: deploy.AuditPolicyPatchMetadata, needsWatch: true},
	}
}
