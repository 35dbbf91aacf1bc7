package kept

import (
	"time"
)

// Issue is what the issue of a token says, or what the request that issued a certificate says beside it.
type Issue struct {
	At      time.Time  `json:"at"`
	Expires *time.Time `json:"expires,omitempty"`

	Account string `json:"account,omitempty"`
	UID     string `json:"uid,omitempty"`
	Bound   *Bound `json:"bound,omitempty"`

	CSR string `json:"csr,omitempty"`

	By      string `json:"by,omitempty"`
	Address string `json:"address,omitempty"`
	AuditID string `json:"auditID,omitempty"`
}

// Bound is the object a token is bound to.
type Bound struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}
