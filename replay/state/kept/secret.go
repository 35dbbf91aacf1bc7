package kept

import (
	"time"
)

// Secret is what is public of a Secret.
type Secret struct {
	UID  string
	Type string // "" when not recorded
	// ServiceAccount and ServiceAccountUID are the annotations of a service account's token.
	ServiceAccount, ServiceAccountUID string
	// LastUsed and InvalidSince are the labels the apiserver and its controllers put on
	// legacy tokens: kubernetes.io/legacy-token-last-used and -invalid-since, dates.
	LastUsed, InvalidSince string
	Deleting               bool
	// Incomplete says that only its existence is known.
	Incomplete bool
	Bootstrap  *BootstrapToken // nil when it is none, or its fields were not recorded
}

// BootstrapToken is what is public of a bootstrap token: everything but its secret.
type BootstrapToken struct {
	ID             string
	Expires        time.Time // zero: never
	Authentication bool      // usage-bootstrap-authentication
	Groups         []string  // auth-extra-groups; sorted, shared, not to be modified
}
