package verdict

import (
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

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
