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

// Rows is what questions read of single requests, findings and the policy: from a store, or from a log in place (package memory).
type Rows interface {
	Clusters(ctx context.Context) ([]queries.Cluster, error)
	// VisitWhy visits the rows of an audit ID, request by request, until visit returns an error.
	VisitWhy(ctx context.Context, cluster, auditID string, visit func(verdict.Row) error) error
	// AuditIDs returns audit IDs that begin with a prefix, sorted, at most limit; of every cluster when cluster is empty.
	AuditIDs(ctx context.Context, cluster, prefix string, limit int) ([]string, error)
	// Writes returns the writes to objects of some stretches of time, newest first.
	Writes(ctx context.Context, cluster string, of []queries.Written) ([]verdict.Row, error)
	// LastGroups returns the groups of a subject's last request up to a moment (zero: now), and its time, zero if there is no request. told
	// is false if the groups cannot be told.
	LastGroups(ctx context.Context, cluster, subject string, until time.Time) (groups []string, last time.Time, told bool, err error)
	// NearSubjects returns subjects whose names resemble one.
	NearSubjects(ctx context.Context, cluster, name string, limit int) ([]string, error)
	// Recording sums up a range, in whole minutes; zero bounds leave it open.
	Recording(ctx context.Context, cluster string, from, to time.Time) (queries.Recording, error)
	// History visits the requests of a range, grouped by what they have in common; those of all subjects if none is named.
	History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error
	// Counted sums up all that rollups count of requests, with the time since when events are stored; Uses visits what each subject, or
	// those named, asked for; Untold visits, as History does, the requests that needed more than these tell (see verdict.Verdict), with
	// or without writes whose content decides.
	Counted(ctx context.Context, cluster string) (all queries.Recording, since time.Time, err error)
	Uses(ctx context.Context, cluster string, subjects []string, visit func(verdict.Use) error) error
	Untold(ctx context.Context, cluster string, subjects []string, writes bool, visit func(codec.Alike) error) error
	// NewestPolicy visits the newest content of every object of the given resources.
	NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error
	// NewestObject returns the newest content of one object of the policy, nil for none.
	NewestObject(ctx context.Context, cluster, resource, namespace, name string) (observation []byte, err error)
	Findings(ctx context.Context, f queries.FindingFilter) ([]verdict.StoredFinding, error)
	FindingCounts(ctx context.Context, f queries.FindingFilter) ([]queries.RuleCount, error)
	// DetectionRules returns the rules this process would detect with.
	DetectionRules() []detect.Rule
	DriftGroups(ctx context.Context, cluster string, from, to time.Time, examples, limit int) ([]queries.Drift, error)
	Judged(ctx context.Context, cluster string, from, to time.Time) (requests, judged int64, err error)
	CredentialUses(ctx context.Context, cluster string, of []string, from, to time.Time, limit int) (queries.CredentialUses, error)
	Credentials(ctx context.Context, cluster, user string, from, to time.Time, limit int) ([]queries.SubjectCredential, error)
}

// Tables is what questions read of sums and lists, in SQL, from a store. A log's store is made when a question needs it.
type Tables interface {
	completeness.Store
	Overview(ctx context.Context, cluster string, from, to time.Time) (queries.Overview, error)
	Events(ctx context.Context, f queries.EventFilter) ([]verdict.Row, error)
	// Facets counts the requests of a filter in all and by columns, Histogram by steps of time and the values of one.
	Facets(ctx context.Context, f queries.EventFilter, columns []string, limit int) (total queries.Facet, out []queries.Facet, err error)
	Histogram(ctx context.Context, f queries.EventFilter, split string, top, steps int) (queries.Histogram, error)
	// Completions returns values of a kind that contain a text: those that begin with it first, and then those with most requests.
	Completions(ctx context.Context, c queries.Completing) ([]queries.Completion, error)
	// Earliest returns when the first request of a cluster came that is stored.
	Earliest(ctx context.Context, cluster string) (time.Time, error)
	// FirstUses and FirstGrants return what was asked, and which bindings let something pass, for the first time; Unnamed counts the
	// requests of a range's days of which that is not known.
	FirstUses(ctx context.Context, f queries.FirstFilter) ([]queries.FirstUse, error)
	FirstGrants(ctx context.Context, f queries.FirstFilter) ([]queries.FirstGrant, error)
	Unnamed(ctx context.Context, cluster string, from, to time.Time) (int64, error)
	// GrantedUses returns what bindings were used for, in the days of a range and ever.
	GrantedUses(ctx context.Context, cluster string, bindings []verdict.Grant, from, to time.Time) ([]queries.GrantedUse, error)
	// Refusals returns refused requests, grouped, most requests first.
	Refusals(ctx context.Context, f queries.RefusalFilter) ([]queries.Refused, queries.RefusedSum, error)
	// PolicyWrites returns the requests that wrote roles and bindings and were not refused, newest first.
	PolicyWrites(ctx context.Context, cluster string, from, to time.Time, limit int) ([]verdict.Row, error)
	QueryLog(ctx context.Context, before time.Time, limit int) ([]queries.Asked, error)
	// SubjectUsage sums what a subject did, by day, with at most limit distinct uses.
	SubjectUsage(ctx context.Context, cluster, subject string, from, to time.Time, limit int) (queries.SubjectUsage, error)
	// Samples names of each access its newest requests that are stored, so many at most.
	Samples(ctx context.Context, cluster string, of []queries.Sampled, most int) ([][]string, error)
	// VisitAnswer answers a question by its name, row by row, after begin.
	VisitAnswer(ctx context.Context, name, cluster string, values map[string]string, begin func(queries.Question) error,
		row func([]any) error) error
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
	// State returns what is known of a cluster's objects since a moment, the earliest that it is asked about, nil if nothing is; it may
	// have to be loaded. With no moment it is everything. It must not be changed.
	State(ctx context.Context, cluster string, since time.Time) (*state.State, error)
	// Clusters returns, sorted, the clusters of which anything is known or was asked while judging.
	Clusters(ctx context.Context) ([]string, error)
}

// Rejudger judges stored requests again.
type Rejudger interface {
	// Rejudge starts a job, or returns the one that does the same already.
	Rejudge(ctx context.Context, want verdict.Rejudge) (verdict.RejudgeJob, error)
	// Rejudges returns all jobs so far.
	Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error)
}
