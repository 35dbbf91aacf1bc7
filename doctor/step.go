package doctor

import (
	"time"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Steps of a connection, in their order, and their states. They are part of the interface.
const (
	StepRegistered = "registered"
	StepConnected  = "connected"
	StepFirstEvent = "first-event"
	StepState      = "state"
	StepCoverage   = "coverage"
	StepFollowed   = "followed"
	StepCounted    = "counted"

	StateDone    = "done"
	StateWaiting = "waiting"
	StateFailed  = "failed"
)

// Step is one step of a connection.
type Step struct {
	ID    string `json:"id"`
	Title string `json:"title"`          // what the step is
	State string `json:"state"`          // done, waiting, failed
	Text  string `json:"text"`           // how it is
	Todo  string `json:"todo,omitempty"` // what to do, several lines, commands among them
}

// Receiver describes the webhook's listener and its certificate.
type Receiver struct {
	Serving bool       `json:"serving"`           // it does
	Listen  string     `json:"listen,omitempty"`  // address
	Names   []string   `json:"names,omitempty"`   // the certificate's
	Expires *time.Time `json:"expires,omitempty"` // when the certificate does
	Since   *time.Time `json:"since,omitempty"`   // accepted and refused count from then
}

// Accepted counts what a cluster posted and the receiver took.
type Accepted struct {
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Posts  int64     `json:"posts"` // how many
	Events int64     `json:"events"`
	Remote string    `json:"remote"` // address of the last
}

// Refusal is a kind of post the receiver refused.
type Refusal struct {
	Cluster string `json:"cluster,omitempty"` // absent: the cluster is not known
	Remote  string `json:"remote"`            // address
	// for a handshake unknown-authority, certificate-expired, receiver-not-trusted, not-tls, handshake; else as in
	// retrial_webhook_refused_requests_total
	Reason string    `json:"reason"`
	Detail string    `json:"detail"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Count  int64     `json:"count"`
}

// connectionFacts is what the steps are derived from.
type connectionFacts struct {
	Cluster string
	Now     time.Time
	Site    Site

	Entry      identity.Cluster
	Registered error // nil: there is an entry, or the token file names the cluster
	Receiver   Receiver
	Accepted   *webhook.Accepted
	Followed   *webhook.Accepted
	Unfollowed []string // apiservers that post, but whose logs are not followed
	Refusals   []webhook.Refusal

	Stored  queries.Cluster // zero: no event
	lag     verdict.Backlog
	State   stateFacts
	Watched bool
	Shares  []queries.Share // of the newest hour there are events of
}

// stateFacts is what is now known of a cluster's objects.
type stateFacts struct {
	Objects        int // roles and bindings
	UnknownKinds   []string
	UnknownObjects int
}
