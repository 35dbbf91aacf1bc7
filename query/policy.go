package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/verdict"
)

// Policy says which policy an answer is about, and what is not known of it.
type Policy struct {
	// At is the moment asked about, or when the newest known change was done; null when no change is known.
	At *time.Time `json:"at"`
	// Known is false when any number of unknown bindings may exist.
	Known bool `json:"known"`
	// Missing names what is not known and could add to the answer.
	Missing []string `json:"missing"`
}

// Grant is a grant.
type Grant struct {
	verdict.GrantNames
	// Kind is "superuser" for what needs no grant: membership of system:masters. The rest of it is empty then.
	Kind string `json:"kind,omitempty"`
	// Verbs of a merged rule that this grant gives; left out when it gives them all.
	Verbs []string `json:"verbs,omitempty"`
}

const (
	groupMasters = kubenames.Masters
	// KindSuperuser is the kind of a grant that no binding gives.
	KindSuperuser = "superuser"
)

func superuser(group string) Grant {
	return Grant{GrantNames: verdict.GrantNames{Subject: "Group/" + group}, Kind: KindSuperuser}
}

func sourceOf(g rbacindex.Grant) Grant {
	return Grant{GrantNames: verdict.GrantNames{
		Binding: content.ObjectOf(g.BindingKey()).String(), Role: content.ObjectOf(g.RoleKey()).String(),
		Subject: objectText(g.SubjectKind(), g.SubjectNamespace(), g.Subject()), Rule: g.Rule(),
	}}
}

// errEmptyLog is said of a log whose policy is asked for and that tells nothing at all.
var errEmptyLog = none("the log has no event, and without one it does not tell the policy")

// objectText writes an object, or a subject, as answers name it.
func objectText(kind, namespace, name string) string {
	if namespace != "" {
		namespace += "/"
	}
	return kind + "/" + namespace + name
}

func sourcesOf(by []rbacindex.Source) (out []Grant) {
	for _, b := range by {
		source := sourceOf(b.Grant)
		source.Verbs = b.Verbs
		out = append(out, source)
	}
	return out
}

// policy returns a cluster's RBAC at a moment, or the newest known if it is zero.
func (a *Service) policy(ctx context.Context, cluster string, at time.Time) (state.View, Policy, error) {
	st, err := a.Replay.State(ctx, cluster, orLatest(at))
	if err != nil {
		return state.View{}, Policy{}, err
	}
	if noPolicy(st) {
		if a.Empty {
			return state.View{}, Policy{}, errEmptyLog
		}
		if a.Offline {
			return state.View{}, Policy{}, none("the log alone does not tell the policy: pass the state it began with as --state, or " +
				"--from-empty if it begins with the cluster's first start")
		}
		return state.View{}, Policy{}, none("no role or binding of cluster %q is known; supply its state with: retrial import --cluster "+
			"%s --state FILE, or follow it with: retrial serve --watch-clusters", cluster, phrase.ShellWord(cluster))
	}
	view, p := st.RBAC(orLatest(at)), Policy{}
	if at.IsZero() {
		at = view.At
	}
	if !at.IsZero() {
		p.At = &at
	}
	return view, p, nil
}

// Latest is later than anything recorded: it asks for the policy as last known.
var Latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// orLatest returns a moment, Latest for none.
func orLatest(at time.Time) time.Time {
	if at.IsZero() {
		return Latest
	}
	return at
}

// doubt enters what is not known.
func (p *Policy) doubt(keys []rbacindex.Key) {
	p.Known, p.Missing = true, []string{}
	for _, k := range keys {
		switch {
		case k.Name != "":
			p.Missing = append(p.Missing, k.String())
		case k.Namespace != "":
			p.Missing = append(p.Missing, k.Kind.String()+"s in "+k.Namespace)
		default:
			p.Missing = append(p.Missing, "all "+k.Kind.String()+"s")
			p.Known = false
		}
	}
}

// policyPatience is how long a question waits for a server that has just started, and still reads the policy.
const policyPatience = 10 * time.Second

// stateOf returns what is known of a cluster since a moment, nil if nothing is. It waits for the Replay to catch up if no policy is known.
func (a *Service) stateOf(ctx context.Context, cluster string, since time.Time) (*state.State, error) {
	if st, err := a.Replay.State(ctx, cluster, since); err != nil || !noPolicy(st) {
		return st, err
	}
	patient, cancel := context.WithTimeout(ctx, policyPatience)
	defer cancel()
	// Caught up or not, the question is answered by what is known now.
	_ = a.settled(patient)
	return a.Replay.State(ctx, cluster, since)
}

// noPolicy reports whether no kind of RBAC object was ever listed: what a log alone shows of them is too little to remove anything.
func noPolicy(st *state.State) bool { return st == nil || len(st.RBAC(Latest).UnknownKinds) == 4 }

// readSubject parses a subject as questions name it: a user name, user:NAME, or group:NAME.
func readSubject(subject string) (user, group string, err error) {
	if name, ok := strings.CutPrefix(subject, "group:"); ok {
		if name == "" {
			return "", "", Bad("invalid subject group: the name is missing")
		}
		return "", name, nil
	}
	return strings.TrimPrefix(subject, "user:"), "", nil
}

// readAsked parses a subject and the groups named beside it: the user, "" for none, and all groups.
func readAsked(subject string, beside []string) (user string, groups []string, err error) {
	user, group, err := readSubject(subject)
	groups = slices.Clone(beside)
	if group != "" {
		groups = append(groups, group)
	}
	return user, groups, err
}

// groupsUnknown says that requests carried the groups, and that which ones is no longer known.
const groupsUnknown = "unknown"

// groupsOf returns the sorted groups of a user: those asked for, or those of its last request, at seen, or none; and always those its name
// alone gives it. from says which; if it is groupsUnknown, missing names them.
func (a *Service) groupsOf(ctx context.Context, cluster, user string, asked []string,
	at time.Time) (groups []string, from string, seen *time.Time, missing []string, err error) {
	groups, from = slices.Clone(asked), "asked"
	if len(asked) == 0 {
		var last time.Time
		var told bool
		if groups, last, told, err = a.Store.LastGroups(ctx, cluster, user, at); err != nil {
			return nil, "", nil, nil, err
		}
		if from = "name"; !last.IsZero() {
			from, seen = "requests", &last
		}
		if !told {
			from, seen, missing = groupsUnknown, nil, []string{fmt.Sprintf("groups of %q", user)}
		}
	}
	if user != "" {
		groups = append(groups, leastpriv.GroupsOf(user)...)
	}
	slices.Sort(groups)
	return slices.Compact(groups), from, seen, missing, nil
}
