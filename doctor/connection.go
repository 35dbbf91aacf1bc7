package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiserver "github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// Queries is what the questions about the installation itself ask the store.
type Queries interface {
	Outcomes(ctx context.Context, cluster string, from, to time.Time) ([]storage.Share, error)
	LogTraits(ctx context.Context, cluster string, from, to time.Time) (storage.LogTraits, error)
	DeadLetters(ctx context.Context, since time.Time) ([]storage.Letters, error)
	DiskBytes(ctx context.Context) (int64, error)
	DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]storage.DirectRequests, error)
}

// Service answers how far the connection of a cluster is, and how the installation does.
type Service struct {
	*query.Service
	Store Store
	Site  Site
}

// Store is what questions, and the checks of an installation, ask the store.
type Store interface {
	Queries
	query.Store
}

// Questions returns the questions about connections and the installation.
func (a *Service) Questions() []query.Question {
	return []query.Question{
		query.NewQuestion(query.CostQuery, "how far the connection of a cluster is", a.Connection),
		query.NewQuestion(query.CostQuery, "how the installation does, and every cluster", a.Doctor),
	}
}

// Site is the installation an API belongs to: what is known of it beside the store.
type Site struct {
	Config  config.Config
	Version string // of this program
	Serving bool   // a server answers; else the store was opened for one question
	// Authority is nil when nothing was ever registered here.
	Authority *identity.Authority
	Contacts  *webhook.Contacts
	Hook      func() string // address of the webhook's listener; nil when there is none
	Metrics   prometheus.Gatherer
	// Apiserver returns a cluster's apiserver configuration over time; nil for none.
	Apiserver func(cluster, server string) *apiserver.History
	// Otherwise returns what was judged by another configuration than is known now; nil: nobody looks.
	Otherwise func(ctx context.Context, cluster string) ([]JudgedOtherwise, error)
	Spooled   func(context.Context) error // waits until nothing is spooled; nil: nothing is here
	Now       func() time.Time
}

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

// Receiver is the webhook's listener and its certificate.
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
	Cluster string    `json:"cluster,omitempty"` // absent: nobody can say whose it was
	Remote  string    `json:"remote"`            // address
	Reason  string    `json:"reason"`            // of a handshake unknown-authority, certificate-expired, receiver-not-trusted, not-tls, handshake; else as in retrial_webhook_refused_requests_total
	Detail  string    `json:"detail"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int64     `json:"count"`
}

// ConnectionAnswer is the answer to how far a cluster's connection is.
type ConnectionAnswer struct {
	Cluster  string    `json:"cluster"`
	Steps    []Step    `json:"steps"`              // in their order
	Receiver Receiver  `json:"receiver"`           // the listener and its certificate
	Accepted *Accepted `json:"accepted,omitempty"` // since the server started
	Refused  []Refusal `json:"refused"`            // the latest first
}

// ConnectionFacts is what the steps are worded from.
type ConnectionFacts struct {
	Cluster string
	Now     time.Time
	Site    Site

	Entry      identity.Cluster
	Registered error // nil: there is an entry, or the token file names the cluster
	Receiver   Receiver
	Accepted   *webhook.Accepted
	Followed   *webhook.Accepted
	Unfollowed []string // apiservers that post, and whose logs are not followed
	Refusals   []webhook.Refusal

	Stored  storage.Cluster // zero: no event
	lag     verdict.Backlog
	State   StateFacts
	Watched bool
	Shares  []storage.Share // of the newest hour there are events of
}

// StateFacts is what is known of a cluster's objects now.
type StateFacts struct {
	Objects        int // roles and bindings
	UnknownKinds   []string
	UnknownObjects int
}

// ConnectionRequest asks how far the connection of a cluster is. Its steps, in this order, are done when:
// registered, a certificate or token of it is accepted; connected, an apiserver posted with it in the last
// 5 minutes, and was not refused since (with several processes also when others store its events);
// first-event, an event of it is stored, imported ones too; state, it is known which roles and bindings
// there are; coverage, of the newest hour's judged requests at most 10 % wait for a state or for the
// content of objects; followed, a follower of its audit log posted in the last 5 minutes (left out by a
// process that receives nothing); counted, the counters of each of its apiservers that are to be read were.
// A step that failed may succeed later; nothing here is final.
type ConnectionRequest struct {
	Cluster string `json:"cluster" required:"true" help:"cluster the question is about"`
}

// Question implements query.Request.
func (ConnectionRequest) Question() (name string, answer ConnectionAnswer) {
	return "connection", answer
}

// Connection answers how far the connection of a cluster is.
func (a *Service) Connection(ctx context.Context, q ConnectionRequest) (out ConnectionAnswer, err error) {
	clusters, err := a.Store.Clusters(ctx)
	if err != nil {
		return out, err
	}
	f, err := a.connectionFacts(ctx, q.Cluster, clusters)
	if err != nil {
		return out, err
	}
	out = ConnectionAnswer{Cluster: q.Cluster, Steps: f.Steps(), Receiver: f.Receiver, Refused: []Refusal{}}
	if f.Accepted != nil {
		out.Accepted = &Accepted{f.Accepted.First.UTC(), f.Accepted.Last.UTC(), f.Accepted.Posts, f.Accepted.Events, f.Accepted.Remote}
	}
	for _, r := range f.Refusals {
		out.Refused = append(out.Refused, Refusal{r.Cluster, r.Remote, string(r.Reason), r.Detail, r.First.UTC(), r.Last.UTC(), r.Count})
	}
	return out, nil
}

// coverageRange is how much of the newest events the share of certain verdicts is taken of.
const coverageRange = time.Hour

func (a *Service) connectionFacts(ctx context.Context, cluster string, stored []storage.Cluster) (ConnectionFacts, error) {
	s := a.Site
	f := ConnectionFacts{Cluster: cluster, Now: s.time(), Site: s, lag: a.Replay.Lag(), Receiver: s.receiver()}
	f.Entry, f.Registered = s.entry(cluster)
	f.Watched = slices.ContainsFunc(s.Config.Watch.Clusters, func(entry string) bool {
		name, _, err := config.WatchedCluster(entry)
		return err == nil && name == cluster
	})
	if accepted, ok := s.Contacts.Accepted(cluster); ok {
		f.Accepted = &accepted
	}
	if followed, ok := s.Contacts.Followed(cluster); ok {
		f.Followed = &followed
	}
	for _, name := range s.Contacts.Unfollowed(cluster, f.Now.Add(-quietAfter)) {
		f.Unfollowed = append(f.Unfollowed, cmp.Or(name, "the apiserver that has no name"))
	}
	f.Refusals = s.Contacts.Refusals(cluster)
	f.State.UnknownKinds = RBACKinds
	if st, ok := a.Replay.State(cluster); ok {
		f.State = StateFacts{}
		view := st.RBAC(f.Now)
		roles, clusterRoles, bindings, clusterBindings := view.RBAC.Len()
		f.State.Objects, f.State.UnknownObjects = roles+clusterRoles+bindings+clusterBindings, len(view.Unknown)
		for _, k := range view.UnknownKinds {
			f.State.UnknownKinds = append(f.State.UnknownKinds, k.String()+"s")
		}
	}
	if i := slices.IndexFunc(stored, func(c storage.Cluster) bool { return c.Name == cluster }); i >= 0 {
		f.Stored = stored[i]
		var err error
		last := f.Stored.Last.Add(time.Minute) // the store knows whole minutes
		if f.Shares, err = a.Store.Outcomes(ctx, cluster, last.Add(-coverageRange), last); err != nil {
			return f, err
		}
	}
	return f, nil
}

// RBACKinds is what is not known before anybody told anything.
var RBACKinds = []string{"ClusterRoles", "ClusterRoleBindings", "Roles", "RoleBindings"}

func (s Site) time() time.Time {
	if s.Now == nil {
		return time.Time{}
	}
	return s.Now()
}

// Receiver describes the webhook's listener.
func (s Site) receiver() Receiver {
	r := Receiver{Serving: s.Serving}
	if s.Hook != nil {
		r.Listen = s.Hook()
	}
	if since := s.Contacts.Since(); !since.IsZero() {
		since = since.UTC()
		r.Since = &since
	}
	if s.Authority == nil {
		return r
	}
	if _, cert, err := s.Authority.Certificates(); err == nil { // else doctor tells
		expires := cert.NotAfter.UTC()
		r.Names, r.Expires = slices.Clone(cert.DNSNames), &expires
		for _, ip := range cert.IPAddresses {
			r.Names = append(r.Names, ip.String())
		}
	}
	return r
}

// Entry returns the registry's entry of a cluster; a cluster that only the token file names
// has none and is registered all the same.
func (s Site) entry(cluster string) (identity.Cluster, error) {
	if s.Authority == nil {
		return identity.Cluster{}, identity.ErrUnknown
	}
	entry, err := s.Authority.Registry().Get(cluster)
	if errors.Is(err, identity.ErrUnknown) && s.Authority.Registry().Known(cluster) {
		return entry, nil
	}
	return entry, err
}

// connectCommand is the command that connects the cluster.
func (f *ConnectionFacts) connectCommand() string {
	return "retrial connect " + phrase.ShellWord(f.Cluster) + f.Site.DataDir()
}

// DataDir is the flag that names the data directory, when it is not the default.
func (s Site) DataDir() string {
	if s.Config.DataDir == "" || s.Config.DataDir == config.Default().DataDir {
		return ""
	}
	return " --data-dir " + phrase.ShellWord(s.Config.DataDir)
}

// ServeCommand is how the receiver is started so that apiservers elsewhere reach it.
func (s Site) ServeCommand() string {
	_, port, err := net.SplitHostPort(s.Config.Webhook.Listen)
	if err != nil || port == "0" {
		port = "9443"
	}
	return "retrial serve --webhook-listen 0.0.0.0:" + port + " --webhook-advertise HOST" + s.DataDir()
}
