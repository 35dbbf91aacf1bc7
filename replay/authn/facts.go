package authn

import (
	"fmt"
	"slices"
	"time"

	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// How long credentials outlive what they stand for.
const (
	// tokenCache is how long an apiserver goes on taking a token it has just verified.
	tokenCache = 10 * time.Second
	// deletionLeeway is how far past its deletionTimestamp an object may be for a token
	// bound to it still to be taken.
	deletionLeeway = time.Minute
	// nodeMemory is how long a kubelet may go on after its Node was deleted without being
	// reported: it does not stop by itself.
	nodeMemory = 10 * time.Minute
	defaultLag = 100 * time.Millisecond
)

// fact is something the state says against a kind of credential.
type fact uint8

const (
	factAccountOther     fact = 1 << iota // no such service account, or with another uid
	factSecretOther                       // the legacy token's Secret
	factBindingOther                      // the pod or node a token is bound to
	factTokenOther                        // the token was not issued, or to another identity
	factCertificateOther                  // the certificate was issued to another identity
	factBootstrapOther
	factBootstrapGroups
)

// facts are what the state says against an identity, with the contradictions about it.
type facts struct {
	against        fact
	contradictions []Contradiction
}

func (f *facts) has(one fact) bool { return f.against&one != 0 }

func (f *facts) add(against fact, name, format string, args ...any) {
	f.against |= against
	f.contradictions = append(f.contradictions, Contradiction{name, fmt.Sprintf(format, args...)})
}

// gather compares the identity with the state of the cluster.
func (f *facts) gather(x *subject, s State) {
	switch x.kind {
	case kindAccount:
		if x.name == "" {
			return
		}
		// Without --service-account-lookup nobody looks what became of a legacy token.
		checked := !x.unchecked || x.jti || x.podUID != ""
		if checked {
			f.account(x, s)
		}
		if x.podUID != "" {
			f.pod(x, s)
		} else if x.nodeUID != "" {
			f.node(x, s)
		}
		if x.legacy && x.legacySecret != "" && checked {
			f.secret(x, s)
		}
		if x.jti {
			f.token(x, s)
		}
	case kindNode:
		f.nodeUser(x, s)
	case kindBootstrap:
		f.bootstrap(x, s)
	}
	if x.fingerprint {
		f.certificate(x, s)
	}
}

// account compares a service account with the object of that name: the uid in a token is that
// of the object it was issued for. Every token says one; a name without comes from elsewhere.
func (f *facts) account(x *subject, s State) {
	uid, known := s.ServiceAccount(x.namespace, x.name, x.at)
	if known == state.Unknown || known == state.Present && (uid == "" || uid == x.u.UID) {
		return
	}
	name := ContradictionSAUID
	if known == state.Absent {
		name = ContradictionSAUnknown
	}
	// The account may just have come, or just have gone.
	history := s.History(kept.ServiceAccounts, x.namespace, x.name)
	var ended time.Time
	for i := range history {
		h := &history[i]
		if h.Unknown {
			return
		}
		if h.Deleted || h.UID != x.u.UID || h.NotBefore.After(x.at.Add(x.lag)) {
			continue
		}
		if i+1 == len(history) || !history[i+1].NotAfter.Before(x.at.Add(-tokenCache-x.lag)) {
			return
		}
		name, ended = ContradictionSAAfterDeletion, history[i+1].NotAfter
	}
	switch {
	case name == ContradictionSAAfterDeletion && known == state.Present:
		f.add(factAccountOther, ContradictionSAUID, "uid %s ended by %s, %s before the request; %s/%s now has uid %s", x.u.UID,
			FormatTime(ended), x.at.Sub(ended), x.namespace, x.name, uid)
	case name == ContradictionSAAfterDeletion:
		f.add(factAccountOther, name, "%s/%s with uid %s was deleted by %s, %s before the request", x.namespace, x.name, x.u.UID,
			FormatTime(ended), x.at.Sub(ended))
	case name == ContradictionSAUnknown:
		f.add(factAccountOther, name, "no service account %s/%s at %s; uid %q is recorded", x.namespace, x.name, FormatTime(x.at), x.u.UID)
	default:
		f.add(factAccountOther, name, "uid %q is recorded; %s/%s has uid %s at %s", x.u.UID, x.namespace, x.name, uid, FormatTime(x.at))
	}
}

// pod compares a token with the pod it is bound to.
func (f *facts) pod(x *subject, s State) {
	p, known := s.PodByUID(x.podUID)
	switch {
	case known == state.Unknown:
		return
	case known == state.Absent:
		f.add(factBindingOther, ContradictionSAPodUnknown, "no pod with uid %s, which the token calls %s/%s",
			x.podUID, x.namespace, x.podName)
		return
	case !p.Created.IsZero() && x.at.Add(x.lag).Before(p.Created):
		f.add(factBindingOther, ContradictionSAPodUnknown, "pod %s/%s with uid %s was created at %s, after the request", p.Namespace,
			p.Name, x.podUID, FormatTime(p.Created))
		return
	case p.Namespace != "" && p.Namespace != x.namespace || p.Name != "" && x.podName != "" && p.Name != x.podName:
		f.add(factBindingOther, ContradictionSAPodUnknown, "the pod with uid %s is %s/%s; the token calls it %s/%s", x.podUID, p.Namespace,
			p.Name, x.namespace, x.podName)
		return
	}
	if p.ServiceAccount != "" && p.ServiceAccount != x.name {
		f.add(factBindingOther, ContradictionSAPodWrong, "pod %s/%s with uid %s runs as %s; the token says %s", p.Namespace, p.Name,
			x.podUID, p.ServiceAccount, x.name)
	}
	switch {
	case gone(p.Gone, x, tokenCache):
		f.add(factBindingOther, ContradictionSAPodDeleted, "pod %s/%s with uid %s was gone by %s, %s before the request", p.Namespace,
			p.Name, x.podUID, FormatTime(p.Gone), x.at.Sub(p.Gone))
	case gone(p.DeletionAt, x, deletionLeeway+tokenCache):
		f.add(factBindingOther, ContradictionSAPodDeleted, "pod %s/%s with uid %s was to end at %s, %s before the request", p.Namespace,
			p.Name, x.podUID, FormatTime(p.DeletionAt), x.at.Sub(p.DeletionAt))
	}
	if x.nodeName == "" || p.Node == "" {
		return
	}
	if x.nodeName != p.Node {
		f.add(factBindingOther, ContradictionSANode, "the token says node %s; pod %s/%s with uid %s runs on %s", x.nodeName, p.Namespace,
			p.Name, x.podUID, p.Node)
		return
	}
	// The node's uid is that of when the token was issued, and is not looked at again.
	f.nodeUID(x, s, p.Bound)
}

// nodeUID compares the uid a pod's token gives its node with the node's, now and since the pod
// was bound to it.
func (f *facts) nodeUID(x *subject, s State, bound time.Time) {
	if x.nodeUID == "" {
		return
	}
	uid, known := s.Node(x.nodeName, x.at)
	if known != state.Present || uid == "" || uid == x.nodeUID {
		return
	}
	before, known := s.Node(x.nodeName, bound)
	if bound.IsZero() || known != state.Present || before != uid {
		return // the node was made anew meanwhile
	}
	f.add(factBindingOther, ContradictionSANode, "the token says node %s has uid %s; it has %s", x.nodeName, x.nodeUID, uid)
}

// node compares a token that is bound to a node alone with it: such tokens end with it.
func (f *facts) node(x *subject, s State) {
	now, known := s.Node(x.nodeName, x.at)
	if known == state.Unknown || known == state.Present && (now == "" || now == x.nodeUID) {
		return
	}
	switch {
	case lately(s, kept.Nodes, "", x.nodeName, x, tokenCache, x.nodeUID):
	case known == state.Absent:
		f.add(factBindingOther, ContradictionSANode, "no node %s at %s; the token is bound to it with uid %s", x.nodeName,
			FormatTime(x.at), x.nodeUID)
	default:
		f.add(factBindingOther, ContradictionSANode, "the token is bound to node %s with uid %s; it has %s at %s", x.nodeName, x.nodeUID,
			now, FormatTime(x.at))
	}
}

// secret compares a legacy token with the Secret the apiserver found it in.
func (f *facts) secret(x *subject, s State) {
	sec, known := s.Secret(x.namespace, x.legacySecret, x.at)
	switch known {
	case state.Absent:
		if lately(s, kept.Secrets, x.namespace, x.legacySecret, x, tokenCache, "") {
			return
		}
		f.add(factSecretOther, ContradictionSASecretMissing, "no Secret %s/%s at %s", x.namespace, x.legacySecret, FormatTime(x.at))
	case state.Present:
		if sec.ServiceAccount != "" && sec.ServiceAccount != x.name || sec.ServiceAccountUID != "" && x.u.UID != "" &&
			sec.ServiceAccountUID != x.u.UID {
			f.add(factSecretOther, ContradictionSASecretMissing, "Secret %s/%s is of service account %s with uid %s; the token says %s "+
				"with uid %s", x.namespace, x.legacySecret, sec.ServiceAccount, sec.ServiceAccountUID, x.name, x.u.UID)
		}
	}
}

// token compares a bound token with its issue.
func (f *facts) token(x *subject, s State) {
	id := x.credentials[0]
	c, known := s.Credential(id)
	switch {
	case known == state.Absent:
		f.add(factTokenOther, ContradictionJTIUnissued, "%s was not issued in a log that is complete", id)
	case known != state.Present:
	case c.Namespace != "" && (c.Namespace != x.namespace || c.ServiceAccount != x.name), c.UID != "" && x.u.UID != "" && c.UID != x.u.UID:
		f.add(factTokenOther, ContradictionJTIDrift, "%s was issued to %s/%s with uid %q by %s at %s (audit ID %s); it came with uid %q",
			id, c.Namespace, c.ServiceAccount, c.UID, c.By, FormatTime(c.Issued), c.AuditID, x.u.UID)
	case c.PodUID != "" && c.PodUID != x.podUID:
		f.add(factTokenOther, ContradictionJTIDrift, "%s was issued for pod %s with uid %s (audit ID %s); it came with pod uid %q", id,
			c.Pod, c.PodUID, c.AuditID, x.podUID)
	case !c.Issued.IsZero() && x.at.Add(x.lag).Before(c.Issued):
		f.add(factTokenOther, ContradictionJTIUnissued, "%s was issued at %s (audit ID %s), after the request", id,
			FormatTime(c.Issued), c.AuditID)
	}
}

// certificate compares a client certificate with the request it was issued for.
func (f *facts) certificate(x *subject, s State) {
	id := x.credentials[0]
	c, known := s.Credential(id)
	if known != state.Present {
		return
	}
	if c.CommonName != "" && (c.CommonName != x.u.Username || !x.groupsAre(c.Organizations)) {
		f.add(factCertificateOther, ContradictionCertDrift, "%s was issued by request %s to %s with %q; it came as %s with %q", id, c.CSR,
			c.CommonName, c.Organizations, x.u.Username, x.u.Groups)
	}
	if !c.Expires.IsZero() && x.at.After(c.Expires.Add(x.lag)) {
		f.add(0, ContradictionCertExpired, "%s of request %s expired at %s, %s before the request", id, c.CSR, FormatTime(c.Expires),
			x.at.Sub(c.Expires))
	}
}

// nodeUser looks for the Node of a node's user. Before it has registered, a kubelet reads and
// creates; what is left over it has no reason to ask.
func (f *facts) nodeUser(x *subject, s State) {
	if x.name == "" || !x.nodes {
		return
	}
	for _, at := range [...]time.Time{x.at, x.at.Add(-nodeMemory)} {
		if _, known := s.Node(x.name, at); known != state.Absent {
			return
		}
	}
	if lately(s, kept.Nodes, "", x.name, x, nodeMemory, "") {
		return
	}
	a, err := request.Of(x.e.Verb, x.e.RequestURI)
	if err != nil || !a.ResourceRequest || a.APIGroup != "" {
		return
	}
	switch a.Resource {
	case "secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes":
	case "serviceaccounts":
		if a.Subresource != "token" {
			return
		}
	case "pods", "nodes":
		if a.Subresource != "status" {
			return
		}
	default:
		return
	}
	f.add(0, ContradictionNodeUnknown, "no Node %s between %s and %s; the request is %s %s", x.name, FormatTime(x.at.Add(-nodeMemory)),
		FormatTime(x.at), a.Verb, a.Resource)
}

const (
	bootstrapNamespace = "kube-system"
	bootstrapSecret    = "bootstrap-token-"
	bootstrapType      = "bootstrap.kubernetes.io/token"
)

// bootstrap compares a bootstrap token with its Secret.
func (f *facts) bootstrap(x *subject, s State) {
	if x.name == "" {
		return
	}
	name := bootstrapSecret + x.name
	sec, known := s.Secret(bootstrapNamespace, name, x.at)
	switch known {
	case state.Unknown:
		return
	case state.Absent:
		if lately(s, kept.Secrets, bootstrapNamespace, name, x, tokenCache, "") {
			return
		}
		f.add(factBootstrapOther, ContradictionBootstrapMissing, "no Secret %s/%s at %s", bootstrapNamespace, name, FormatTime(x.at))
		return
	}
	if earlier, k := s.Secret(bootstrapNamespace, name, x.at.Add(-tokenCache-x.lag)); k != state.Present || earlier.UID != sec.UID {
		return // it has just come, or changed
	}
	if sec.Type != "" && sec.Type != bootstrapType {
		f.add(factBootstrapOther, ContradictionBootstrapMissing, "Secret %s/%s is of type %s", bootstrapNamespace, name, sec.Type)
		return
	}
	b := sec.Bootstrap
	if b == nil {
		return
	}
	if !b.Authentication {
		f.add(factBootstrapOther, ContradictionBootstrapMissing, "Secret %s/%s is not for authentication", bootstrapNamespace, name)
	}
	if gone(b.Expires, x, tokenCache) {
		f.add(factBootstrapOther, ContradictionBootstrapExpired, "the token expired at %s, %s before the request", FormatTime(b.Expires),
			x.at.Sub(b.Expires))
	}
	if bootstrapGroups(x.u.Groups) && !sameBootstrapGroups(x.u.Groups, b.Groups) {
		f.add(factBootstrapGroups, ContradictionBootstrapGroups, "groups %q; the token's Secret gives %s and %q", x.u.Groups,
			GroupBootstrappers, b.Groups)
	}
}

// sameBootstrapGroups compares recorded groups with those of the Secret, as sets.
func sameBootstrapGroups(got, extra []string) bool {
	return !slices.ContainsFunc(extra, func(g string) bool { return !slices.Contains(got, g) }) &&
		!slices.ContainsFunc(got, func(g string) bool {
			return g != GroupBootstrappers && g != GroupAuthenticated && !slices.Contains(extra, g)
		})
}

// lately reports whether an object was there, or may have been, at any time from so long before
// the request to its lag behind it; with a uid, whether that one was.
func lately(s State, resource, namespace, name string, x *subject, before time.Duration, uid string) bool {
	from, to := x.at.Add(-before-x.lag), x.at.Add(x.lag)
	history := s.History(resource, namespace, name)
	for i := range history {
		v := &history[i]
		if v.Deleted || v.NotBefore.After(to) || i+1 < len(history) && history[i+1].NotAfter.Before(from) {
			continue
		}
		if v.Unknown || uid == "" || v.UID == "" || v.UID == uid {
			return true
		}
	}
	return false
}

// gone reports whether a moment lies further back than credentials outlive it.
func gone(end time.Time, x *subject, outlive time.Duration) bool {
	return !end.IsZero() && end.Add(outlive+x.lag).Before(x.at)
}

// FormatTime writes a time as evidence does.
func FormatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// State is what the evaluator asks about the objects behind credentials, as of a moment. Every
// answer is three-valued; Unknown never leads to a contradiction. Absent of a pod by uid or of a
// credential means that the record is complete: there has been none. *state.State is one.
type State interface {
	ServiceAccount(namespace, name string, at time.Time) (uid string, known state.Known)
	// History returns every version kept of an object, oldest first; it is asked for service
	// accounts, and only before a contradiction is reported.
	History(resource, namespace, name string) []state.Version
	Pod(namespace, name string, at time.Time) (state.Pod, state.Known)
	PodByUID(uid string) (state.Pod, state.Known)
	Node(name string, at time.Time) (uid string, known state.Known)
	Secret(namespace, name string, at time.Time) (kept.Secret, state.Known)
	Credential(id string) (state.Credential, state.Known)
}
