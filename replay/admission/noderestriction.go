package admission

// nodeRestriction limits what nodes write. Its words are everybody's, so that it is known by
// the user too.
type nodeRestriction struct{}

func (nodeRestriction) name() string { return "NodeRestriction" }

func (nodeRestriction) refused(r *refusal) (string, bool) {
	return "", r.node && r.forbidden && begins(r.inner, `node "`, "can only access node lease with ", "can only access CSINode with ",
		"is not allowed to modify labels: ", "node requested token ", "can only create a node CSR with CN=", "unexpected pod subresource ",
		"pod does not have ", "can only create pods with spec.nodeName set to itself", "can only create ", "cannot set or change ",
		"unexpected operation ", "unsupported ")
}
