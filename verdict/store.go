package verdict

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

// This file holds the types that the replay loop and the store exchange besides [Row]. They live
// here, so that neither needs to import the other.

// KnownRow is what the store already holds of one event: a standing row (one whose signs sum to
// +1), reduced to what decides whether another record of the same event is a duplicate, delivered
// again, or a fuller copy.
type KnownRow struct {
	Cluster    string
	EventKey   event.Hash128
	Request    event.Hash128
	Received   time.Time      // requestReceivedTimestamp
	Position   event.Position // where the stored record stands in Kafka
	Content    event.Hash128  // of the canonical redacted event as stored
	Size       int            // bytes of the canonical redacted event as stored
	HasVerdict bool           // the row carries the request's verdict
	Revision   uint64         // policy revision of the row
}

// Span bounds the times at which requests of a cluster were received; both ends inclusive.
type Span struct {
	Cluster  string
	From, To time.Time
}

// AffectedFilter selects standing rows that carry a verdict and may have to be judged
// again. Cluster, Partitions and the window are always applied; an empty list of users,
// groups or namespaces does not restrict. Users and Groups are alternatives: a row is
// selected when its user, or the user it impersonates, is in Users or has a group in Groups
// (both empty: every row). A non-empty Namespaces restricts further; "" in it stands for
// cluster-scoped and non-resource requests. It does not restrict impersonated requests: the
// right to impersonate may be granted in another namespace than the request's. Nor does it
// restrict access reviews, which are selected as well when they asked about one of Users, or a
// user with one of Groups. A non-empty
// Credentials restricts to requests made with one of them (see Verdict.Credential), and each
// list of Only to verdicts that say one of its values.
type AffectedFilter struct {
	Cluster    string
	Partitions []int32   // Kafka partitions of audit.events the caller owns
	From, To   time.Time // inclusive bounds of requestReceivedTimestamp; zero To = no upper bound
	// Ended is an inclusive lower bound of stageTimestamp, or of requestReceivedTimestamp where that
	// is later: a request is judged by what held until then. Zero = no bound.
	Ended       time.Time
	Users       []string
	Groups      []string
	Namespaces  []string
	Credentials []string
	Only        Selection
}

// Selection restricts rows by fields of their verdicts. Empty lists do not restrict; values of one
// list are alternatives.
type Selection struct {
	Verbs, Resources, Namespaces []string // of the attributes; a resource without group or subresource
	Outcomes, Classes            []string
}

// PolicyVersion is one observation of an object the replica keeps, as stored: the history
// the state is rebuilt from. Two values with the same Position and Index are the same
// observation; saving one again changes nothing.
type PolicyVersion struct {
	Cluster         string
	Resource        string // "roles.rbac.authorization.k8s.io", "namespaces", "serviceaccounts", ...
	Namespace, Name string
	UID             string
	ResourceVersion string
	Deleted         bool
	// Observation is the encoded observation (replay/state's own versioned JSON); opaque to the
	// store.
	Observation []byte
	// Position is the record's place in audit.policy; Index tells the observations of one
	// record apart (a snapshot or a deletecollection has many).
	Position event.Position
	Index    int32
	// Observed is a time near which it was true (stage time or end of the list), only for retention
	// and for display; order is by resource version, never by this.
	Observed time.Time
}

// StoredDeadLetter is a dead letter with its place in audit.deadletter; saving the same
// position twice keeps one.
type StoredDeadLetter struct {
	event.DeadLetter
	Position event.Position
	Received time.Time
}

// Backlog is how far the runner is behind, in records, as far as it knows locally.
type Backlog struct {
	Events      int64 // of the owned partitions, not settled
	Policy      int64 // not applied
	DeadLetters int64 // of the owned partitions, not stored
	Corrections int64 // owned partitions with policy changes to process
}

// Row is one event with its verdict on the way to storage. Sign is +1 for a row that
// stands and −1 for one that a correction takes back; Revision tells versions apart.
type Row struct {
	Cluster   string
	Source    string // "webhook", "import", ...
	APIServer string // as named in the endpoint, may be empty
	Received  time.Time
	Position  event.Position
	EventKey  event.Hash128 // identity of this event (request key + stage + stage time)
	Request   event.Hash128 // identity of the request (all stages)
	Content   event.Hash128 // of the canonical redacted event
	Size      int           // bytes of the canonical redacted event
	Event     *event.Event
	// Verdict is nil on the rows of a request's later stages: the stages of one request
	// are one verdict and one usage, and the first stage stored carries it.
	Verdict *Verdict
	// Marks are the detection rules that select the request; only rows with a verdict have
	// any.
	Marks []Mark
	// Counted holds the keys of the accesses that a stored row is counted for: its request's, then
	// those of the checks behind it. Whatever replaces the row carries them over.
	Counted []uint64
	// AgentOther says that a stored row's user agent is counted with others of the subject's. It is
	// carried over like Counted.
	AgentOther bool
	// FirstOther says of a stored row that keys of its marks that end with MarkFirst are not kept by
	// themselves. Handed on as Counted is.
	FirstOther bool
	Sign       int8
	Revision   uint64
}
