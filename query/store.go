package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Rows is what questions ask of single requests, of findings and of the policy. A store answers
// it, and a log that is read where it lies (package memory).
type Rows interface {
	Clusters(ctx context.Context) ([]queries.Cluster, error)
	// VisitWhy visits the rows of an audit ID, request by request, until visit returns an error.
	VisitWhy(ctx context.Context, cluster, auditID string, visit func(verdict.Row) error) error
	// Writes returns the writes to objects of some stretches of time, newest first.
	Writes(ctx context.Context, cluster string, of []queries.Written) ([]verdict.Row, error)
	// LastGroups returns the groups a subject's requests carried the last time up to a moment
	// (zero: now), and when that was; zero when there is no request. told is false when nobody
	// can tell which they were.
	LastGroups(ctx context.Context, cluster, subject string, until time.Time) (groups []string, last time.Time, told bool, err error)
	// NearSubjects returns subjects that are called much like a name.
	NearSubjects(ctx context.Context, cluster, name string, limit int) ([]string, error)
	// Recording sums up a range, in whole minutes; zero bounds leave it open.
	Recording(ctx context.Context, cluster string, from, to time.Time) (queries.Recording, error)
	// History visits the requests of a range, alike ones once; of all subjects when none is named.
	History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error
	// NewestPolicy visits the newest content of every object of the given resources.
	NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error
	Findings(ctx context.Context, f queries.FindingFilter) ([]verdict.StoredFinding, error)
	FindingCounts(ctx context.Context, f queries.FindingFilter) ([]queries.RuleCount, error)
	// DetectionRules are the rules this process would detect with.
	DetectionRules() []detect.Rule
	DriftGroups(ctx context.Context, cluster string, from, to time.Time, examples, limit int) ([]queries.Drift, error)
	Judged(ctx context.Context, cluster string, from, to time.Time) (requests, judged int64, err error)
	CredentialUses(ctx context.Context, cluster, credential string, from, to time.Time, limit int) ([]queries.CredentialUse, error)
	Credentials(ctx context.Context, cluster, user string, from, to time.Time, limit int) ([]queries.SubjectCredential, error)
}

// Tables is what questions ask of sums and lists, in SQL: a store alone answers it. That of a log is
// made when a question asks for it.
type Tables interface {
	completeness.Store
	Overview(ctx context.Context, cluster string, from, to time.Time) (queries.Overview, error)
	Events(ctx context.Context, f queries.EventFilter) ([]verdict.Row, error)
	QueryLog(ctx context.Context, before time.Time, limit int) ([]queries.Asked, error)
	// SubjectUsage sums what a subject did, by day, with at most limit distinct uses.
	SubjectUsage(ctx context.Context, cluster, subject string, from, to time.Time, limit int) (queries.SubjectUsage, error)
	Ask(ctx context.Context, name, cluster string, values map[string]string) (queries.Question, [][]any, error)
}

// Store is everything questions ask a store.
type Store interface {
	Rows
	Tables
}

// Replay is what questions ask the runner.
type Replay interface {
	Lag() verdict.Backlog
	WaitDrained(ctx context.Context) error
	// State is what is known of a cluster's objects, false when that is nothing. It is only read.
	State(cluster string) (*state.State, bool)
	// Clusters are those anything is known of, or was asked about while judging, sorted.
	Clusters() []string
}

// Rejudger is what questions ask whoever judges stored requests again.
type Rejudger interface {
	// Rejudge begins a job, or returns the one that does the same already.
	Rejudge(ctx context.Context, want verdict.Rejudge) (verdict.RejudgeJob, error)
	// Rejudges returns every job there was.
	Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error)
}
