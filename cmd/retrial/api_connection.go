package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
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

// doctorQueries is what the questions about the installation itself ask the store.
type doctorQueries interface {
	Outcomes(ctx context.Context, cluster string, from, to time.Time) ([]storage.Share, error)
	LogTraits(ctx context.Context, cluster string, from, to time.Time) (storage.LogTraits, error)
	DeadLetters(ctx context.Context, since time.Time) ([]storage.Letters, error)
	DiskBytes(ctx context.Context) (int64, error)
	DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]storage.DirectRequests, error)
}

// doctorAPI answers how far the connection of a cluster is, and how the installation does.
type doctorAPI struct {
	*query.Service
	store doctorStore
	site  site
}

// doctorStore is what doctorAPI asks the store.
type doctorStore interface {
	doctorQueries
	query.Store
}

func (a *doctorAPI) routes() []query.Question {
	return []query.Question{
		{Path: "connection", Parameters: []string{"cluster"}, Cost: query.CostQuery, Answer: a.connection},
		{Path: "doctor", Parameters: []string{"cluster"}, Cost: query.CostQuery, Answer: a.doctor},
	}
}

// site is the installation an API belongs to: what is known of it beside the store.
type site struct {
	cfg     config.Config
	serving bool // a server answers; else the store was opened for one question
	// authority is nil when nothing was ever registered here.
	authority *identity.Authority
	contacts  *webhook.Contacts
	hook      func() string // address of the webhook's listener; nil when there is none
	metrics   prometheus.Gatherer
	// apiserver returns a cluster's apiserver configuration over time; nil for none.
	apiserver func(cluster, server string) *apiserver.History
	otherwise *otherwise                  // nil: nobody asks
	spooled   func(context.Context) error // waits until nothing is spooled; nil: nothing is here
	now       func() time.Time
}

// site is that of a running server.
func (s *system) site() site {
	out := site{
		cfg: s.cfg, serving: true, authority: s.authority, metrics: s.reg, apiserver: s.apiservers.history, otherwise: s.otherwise, now: time.Now,
	}
	if s.spool != nil {
		out.spooled = s.spool.Wait
	}
	if s.halves.ingests() {
		out.contacts, out.hook = s.contacts, func() string { return s.hook }
	}
	return out
}

// closedSite is that of a data directory no server has open.
func closedSite(cfg config.Config, known *apiservers) site {
	s := site{cfg: cfg, apiserver: known.history, now: time.Now}
	if _, err := os.Stat(identityConfig(cfg).Dir); err == nil { // opening would make one
		if a, err := openIdentity(cfg); err == nil {
			s.authority = a
		}
	}
	return s
}

// Steps of a connection, in their order, and their states. They are part of the interface.
const (
	stepRegistered = "registered"
	stepConnected  = "connected"
	stepFirstEvent = "first-event"
	stepState      = "state"
	stepCoverage   = "coverage"
	stepFollowed   = "followed"
	stepCounted    = "counted"

	stateDone    = "done"
	stateWaiting = "waiting"
	stateFailed  = "failed"
)

// stepJSON is one step of a connection.
type stepJSON struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	State string `json:"state"`
	Text  string `json:"text"`
	Todo  string `json:"todo,omitempty"`
}

// receiverJSON is the webhook's listener and its certificate.
type receiverJSON struct {
	Serving bool       `json:"serving"`
	Listen  string     `json:"listen,omitempty"`
	Names   []string   `json:"names,omitempty"` // the certificate's
	Expires *time.Time `json:"expires,omitempty"`
	Since   *time.Time `json:"since,omitempty"` // accepted and refused count from then
}

type acceptedJSON struct {
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Posts  int64     `json:"posts"`
	Events int64     `json:"events"`
	Remote string    `json:"remote"`
}

type refusalJSON struct {
	Cluster string    `json:"cluster,omitempty"` // absent: nobody can say whose it was
	Remote  string    `json:"remote"`
	Reason  string    `json:"reason"`
	Detail  string    `json:"detail"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int64     `json:"count"`
}

// connectionJSON is the answer to how far a cluster's connection is.
type connectionJSON struct {
	Cluster  string        `json:"cluster"`
	Steps    []stepJSON    `json:"steps"`
	Receiver receiverJSON  `json:"receiver"`
	Accepted *acceptedJSON `json:"accepted,omitempty"`
	Refused  []refusalJSON `json:"refused"` // the latest first
}

// connectionFacts is what the steps are worded from.
type connectionFacts struct {
	cluster string
	now     time.Time
	site    site

	entry      identity.Cluster
	registered error // nil: there is an entry, or the token file names the cluster
	receiver   receiverJSON
	accepted   *webhook.Accepted
	followed   *webhook.Accepted
	unfollowed []string // apiservers that post, and whose logs are not followed
	refusals   []webhook.Refusal

	stored  storage.Cluster // zero: no event
	lag     verdict.Backlog
	state   stateFacts
	watched bool
	shares  []storage.Share // of the newest hour there are events of
}

// stateFacts is what is known of a cluster's objects now.
type stateFacts struct {
	objects        int // roles and bindings
	unknownKinds   []string
	unknownObjects int
}

func (a *doctorAPI) connection(ctx context.Context, q url.Values) (any, error) {
	cluster := q.Get("cluster")
	if cluster == "" {
		return nil, query.Bad("cluster is missing")
	}
	clusters, err := a.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	f, err := a.connectionFacts(ctx, cluster, clusters)
	if err != nil {
		return nil, err
	}
	out := connectionJSON{Cluster: cluster, Steps: f.steps(), Receiver: f.receiver, Refused: []refusalJSON{}}
	if f.accepted != nil {
		out.Accepted = &acceptedJSON{f.accepted.First.UTC(), f.accepted.Last.UTC(), f.accepted.Posts, f.accepted.Events, f.accepted.Remote}
	}
	for _, r := range f.refusals {
		out.Refused = append(out.Refused, refusalJSON{r.Cluster, r.Remote, string(r.Reason), r.Detail, r.First.UTC(), r.Last.UTC(), r.Count})
	}
	return out, nil
}

// coverageRange is how much of the newest events the share of certain verdicts is taken of.
const coverageRange = time.Hour

func (a *doctorAPI) connectionFacts(ctx context.Context, cluster string, stored []storage.Cluster) (connectionFacts, error) {
	s := a.site
	f := connectionFacts{cluster: cluster, now: s.time(), site: s, lag: a.Replay.Lag(), receiver: s.receiver()}
	f.entry, f.registered = s.entry(cluster)
	f.watched = slices.ContainsFunc(s.cfg.Watch.Clusters, func(entry string) bool {
		name, _, err := config.WatchedCluster(entry)
		return err == nil && name == cluster
	})
	if accepted, ok := s.contacts.Accepted(cluster); ok {
		f.accepted = &accepted
	}
	if followed, ok := s.contacts.Followed(cluster); ok {
		f.followed = &followed
	}
	for _, name := range s.contacts.Unfollowed(cluster, f.now.Add(-quietAfter)) {
		f.unfollowed = append(f.unfollowed, cmp.Or(name, "the apiserver that has no name"))
	}
	f.refusals = s.contacts.Refusals(cluster)
	f.state.unknownKinds = rbacKinds
	if st, ok := a.Replay.State(cluster); ok {
		f.state = stateFacts{}
		view := st.RBAC(f.now)
		roles, clusterRoles, bindings, clusterBindings := view.RBAC.Len()
		f.state.objects, f.state.unknownObjects = roles+clusterRoles+bindings+clusterBindings, len(view.Unknown)
		for _, k := range view.UnknownKinds {
			f.state.unknownKinds = append(f.state.unknownKinds, k.String()+"s")
		}
	}
	if i := slices.IndexFunc(stored, func(c storage.Cluster) bool { return c.Name == cluster }); i >= 0 {
		f.stored = stored[i]
		var err error
		last := f.stored.Last.Add(time.Minute) // the store knows whole minutes
		if f.shares, err = a.store.Outcomes(ctx, cluster, last.Add(-coverageRange), last); err != nil {
			return f, err
		}
	}
	return f, nil
}

// rbacKinds is what is not known before anybody told anything.
var rbacKinds = []string{"ClusterRoles", "ClusterRoleBindings", "Roles", "RoleBindings"}

func (s site) time() time.Time {
	if s.now == nil {
		return time.Time{}
	}
	return s.now()
}

// receiver describes the webhook's listener.
func (s site) receiver() receiverJSON {
	r := receiverJSON{Serving: s.serving}
	if s.hook != nil {
		r.Listen = s.hook()
	}
	if since := s.contacts.Since(); !since.IsZero() {
		since = since.UTC()
		r.Since = &since
	}
	if s.authority == nil {
		return r
	}
	if _, cert, err := s.authority.Certificates(); err == nil { // else doctor tells
		expires := cert.NotAfter.UTC()
		r.Names, r.Expires = slices.Clone(cert.DNSNames), &expires
		for _, ip := range cert.IPAddresses {
			r.Names = append(r.Names, ip.String())
		}
	}
	return r
}

// entry returns the registry's entry of a cluster; a cluster that only the token file names
// has none and is registered all the same.
func (s site) entry(cluster string) (identity.Cluster, error) {
	if s.authority == nil {
		return identity.Cluster{}, identity.ErrUnknown
	}
	entry, err := s.authority.Registry().Get(cluster)
	if errors.Is(err, identity.ErrUnknown) && s.authority.Registry().Known(cluster) {
		return entry, nil
	}
	return entry, err
}

// connectCommand is the command that connects the cluster.
func (f *connectionFacts) connectCommand() string {
	return "retrial connect " + phrase.ShellWord(f.cluster) + f.site.dataDir()
}

// dataDir is the flag that names the data directory, when it is not the default.
func (s site) dataDir() string {
	if s.cfg.DataDir == "" || s.cfg.DataDir == config.Default().DataDir {
		return ""
	}
	return " --data-dir " + phrase.ShellWord(s.cfg.DataDir)
}

// serveCommand is how the receiver is started so that apiservers elsewhere reach it.
func (s site) serveCommand() string {
	_, port, err := net.SplitHostPort(s.cfg.Webhook.Listen)
	if err != nil || port == "0" {
		port = "9443"
	}
	return "retrial serve --webhook-listen 0.0.0.0:" + port + " --webhook-advertise HOST" + s.dataDir()
}
