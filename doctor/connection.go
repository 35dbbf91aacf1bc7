package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/queries"
)

// ConnectionAnswer reports how far a cluster's connection is.
type ConnectionAnswer struct {
	Cluster  string    `json:"cluster"`
	Steps    []Step    `json:"steps"`              // in their order
	Receiver Receiver  `json:"receiver"`           // the listener and its certificate
	Accepted *Accepted `json:"accepted,omitempty"` // since the server started
	Refused  []Refusal `json:"refused"`            // the latest first
}

// ConnectionRequest asks the progress of a cluster's connection. Its steps, in this order, are done when:
// registered, a certificate or token of it is accepted; connected, an apiserver posted with it in the last
// 5 minutes, and was not refused since (with several processes also when others store its events);
// first-event, an event of it is stored, imported ones too; state, it is known which roles and bindings
// there are; coverage, of the newest hour's judged requests at most 10 % wait for a state or for the
// content of objects; followed, a follower of its audit log posted in the last 5 minutes (left out by a
// process that receives nothing); counted, the counters of each of its apiservers that are to be read were.
// A step that failed may succeed later; nothing here is final.
type ConnectionRequest struct {
	query.Asks[ConnectionAnswer] `question:"connection"`
	Cluster                      string `json:"cluster" required:"true" help:"cluster the question is about"`
}

// Connection answers the progress of a cluster's connection.
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

func (a *Service) connectionFacts(ctx context.Context, cluster string, stored []queries.Cluster) (connectionFacts, error) {
	s := a.Site
	f := connectionFacts{Cluster: cluster, Now: s.time(), Site: s, lag: a.Replay.Lag(), Receiver: s.receiver()}
	f.Entry, f.Registered = s.entry(cluster)
	f.Watched = slices.ContainsFunc(s.Config.Watch.Clusters, func(entry string) bool {
		name, _, err := config.WatchedCluster(entry)
		return err == nil && name == cluster
	})
	f.Accepted, f.Followed = s.Contacts.Accepted(cluster), s.Contacts.Followed(cluster)
	for _, name := range s.Contacts.Unfollowed(cluster, f.Now.Add(-quietAfter)) {
		f.Unfollowed = append(f.Unfollowed, cmp.Or(name, "the apiserver that has no name"))
	}
	f.Refusals = s.Contacts.Refusals(cluster)
	f.State.UnknownKinds = rbacKinds
	st, err := a.Replay.State(ctx, cluster, f.Now)
	if err != nil {
		return f, err
	}
	if st != nil {
		f.State = stateFacts{}
		view := st.RBAC(f.Now)
		roles, clusterRoles, bindings, clusterBindings := view.RBAC.Len()
		f.State.Objects, f.State.UnknownObjects = roles+clusterRoles+bindings+clusterBindings, len(view.Unknown)
		for _, k := range view.UnknownKinds {
			f.State.UnknownKinds = append(f.State.UnknownKinds, k.String()+"s")
		}
	}
	if i := slices.IndexFunc(stored, func(c queries.Cluster) bool { return c.Name == cluster }); i >= 0 {
		f.Stored = stored[i]
		var err error
		last := f.Stored.Last.Add(time.Minute) // the store knows whole minutes
		if f.Shares, err = a.Store.Outcomes(ctx, cluster, last.Add(-coverageRange), last); err != nil {
			return f, err
		}
	}
	return f, nil
}

// rbacKinds is what is not known before any state was given.
var rbacKinds = []string{"ClusterRoles", "ClusterRoleBindings", "Roles", "RoleBindings"}

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
	if _, cert, err := s.Authority.Certificates(); err == nil { // otherwise doctor reports it
		expires := cert.NotAfter.UTC()
		r.Names, r.Expires = slices.Clone(cert.DNSNames), &expires
		for _, ip := range cert.IPAddresses {
			r.Names = append(r.Names, ip.String())
		}
	}
	return r
}
