package state

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Pod is what a State knows of one pod, by its uid. Times are the latest at which the change
// was certainly effective; zero when it has not happened as far as is known.
type Pod struct {
	Namespace, Name string
	UID             string
	// ServiceAccount is the name of its service account, "" when that was not recorded.
	ServiceAccount string
	// Node is the node it is bound to. With a Bound time it may be empty: bound, to a node that was not recorded.
	Node    string
	Created time.Time
	Bound   time.Time
	// DeletionAt is metadata.deletionTimestamp: when the grace it was given ends.
	DeletionAt time.Time
	// DeletionOpen says that DeletionAt may be earlier, or set though it is zero: by a write whose outcome was not recorded.
	DeletionOpen bool
	// Gone is when it no longer existed.
	Gone time.Time
}

// Credential is the issue of a token or of a client certificate. Fields that were not recorded are empty.
type Credential struct {
	ID     string    // "JTI=…" or "X509SHA256=…", as in the extra of the users it makes
	Issued time.Time // not before it; the beginning of the request that issued it
	// Expires is what the answer, or the certificate, says. A token may be accepted for longer: apiservers extend those that pods mount.
	Expires time.Time

	// Of a token: whose it is and what it is bound to.
	Namespace, ServiceAccount, UID string
	Pod, PodUID                    string
	Node, NodeUID                  string
	Secret, SecretUID              string

	// Of a certificate: the request it was issued for and what it says.
	CSR, Signer   string
	CommonName    string
	Organizations []string // shared, not to be modified

	By      string // user who asked for it
	ByAddr  string // address the request came from
	AuditID string // of the request that issued it
}

// Pod returns the pod that had a name at a moment. Node, Bound and DeletionAt are as of that moment; Gone is always zero. With Unknown, the
// Pod says what is known of the last one. A pod of which only the name was recorded has no UID.
func (s *State) Pod(namespace, name string, at time.Time) (Pod, Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := instant.Of(at)
	if t < s.horizon {
		return Pod{Namespace: namespace, Name: name}, Unknown
	}
	var room [6]podStep
	steps := s.podSteps(room[:0], podName{namespace, name})
	i := stepAt(steps, t)
	out := Pod{Namespace: namespace, Name: name}
	if i > 0 && steps[i-1].phase != phaseAbsent {
		st := &steps[i-1]
		st.export(&out)
		if st.phase == phaseUnknown {
			return out, Unknown
		}
		return out, Present
	}
	if s.unseen(kept.Key{Resource: kept.ResPod, Namespace: namespace, Name: name}, t, t) || s.maybePod(namespace, t) {
		return out, Unknown
	}
	return out, Absent
}

// export writes what a step says of its pod.
func (s *podStep) export(out *Pod) {
	if s.pod != nil {
		out.UID = s.pod.uid
		out.Created = instant.Time(s.created)
	}
	if s.spec != nil {
		out.ServiceAccount = s.spec.account
	}
	out.Node, out.Bound = s.node, instant.Time(s.bound)
	if s.deletion != instant.None {
		out.DeletionAt = instant.Time(s.deletion)
	}
	out.DeletionOpen = s.open
}

// PodByUID returns everything known of a pod, whenever it lived. Absent means that no such pod ever existed, as far back as the State
// remembers, and that it knows all pods.
func (s *State) PodByUID(uid string) (Pod, Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.pods.uids[uid]
	if p == nil {
		return Pod{}, s.never(kept.ResPod)
	}
	var room [6]podStep
	steps := s.podSteps(room[:0], p.name)
	out := Pod{Namespace: p.name.namespace, Name: p.name.name, UID: uid}
	for i := range steps {
		st := &steps[i]
		switch {
		case st.pod == p:
			st.export(&out)
		case i > 0 && steps[i-1].pod == p:
			out.Gone = instant.Time(st.na)
		}
	}
	if l := s.life(p, s.pods.blindsOf(p.name)); p.gone.na != noSight && !l.contested() {
		out.Gone = instant.Time(p.gone.na)
	}
	return out, Present
}

// neverToken is never for tokens.
func (s *State) neverToken() Known {
	if !s.issues {
		return Unknown // the policy may leave them out
	}
	return s.never(kept.ResCredential)
}

// never returns Absent if every object that ever existed of a resource is known, as far back as the State remembers, else Unknown.
func (s *State) never(res kept.Resource) Known {
	if res == kept.ResPod && s.pods.nameless || res == kept.ResCredential && s.forgot {
		return Unknown // it may be one of those
	}
	for k, obj := range s.objects[res] {
		if k.Name != "" {
			continue
		}
		for i := range obj.line {
			// A kind is unknown before the beginning of time, for no time at all.
			if st := &obj.line[i]; st.phase == phaseUnknown && (i+1 == len(obj.line) || obj.line[i+1].na > max(st.na, s.horizon)) {
				return Unknown
			}
		}
	}
	return Absent
}

// Node returns the uid of a node at a moment. It may be empty with Present, when it was not recorded.
func (s *State) Node(name string, at time.Time) (uid string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, known := s.lookup(kept.Key{Resource: kept.ResNode, Name: name}, instant.Of(at))
	return v.uid, known
}

// Secret returns what is public of a Secret at a moment. A Present one may be Incomplete: with events at level Metadata only its existence
// is known.
func (s *State) Secret(namespace, name string, at time.Time) (kept.Secret, Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st, known := s.lookup(kept.Key{Resource: kept.ResSecret, Namespace: namespace, Name: name}, instant.Of(at))
	if known != Present {
		return kept.Secret{UID: st.uid}, known
	}
	out := kept.Secret{Incomplete: true}
	if v, ok := st.content.Object.(*kept.Secret); ok {
		out = *v
	}
	out.UID, out.Deleting = st.uid, st.content.Deleting
	return out, Present
}

// Credential returns the issue of a credential. Absent means that none with this id was issued, in a log that is, or is said to be,
// complete since the cluster was made, and, for a token, that records the issue of tokens at all. After Prune has forgotten credentials
// nothing is Absent any more.
func (s *State) Credential(id string) (Credential, Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.credentials[id]; c != nil {
		return s.full(c), Present
	}
	if strings.HasPrefix(id, kept.PrefixJTI) {
		return Credential{}, s.neverToken()
	}
	return Credential{}, s.never(kept.ResCredential)
}

// Credentials visits the credentials of a service account by id, until visit returns false: with an empty name those of all accounts of the
// namespace, with both empty those of all namespaces and all certificates. visit must not call the State.
func (s *State) Credentials(namespace, name string, visit func(Credential) bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var ids []string
	for id, c := range s.credentials {
		if (namespace == "" || c.namespace == namespace) && (name == "" || c.account == name) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if !visit(s.full(s.credentials[id])) {
			return
		}
	}
}

// Related reports whether at a moment a path leads from an object to a node, as the node authorizer follows it. Absent is certain.
func (s *State) Related(at time.Time, node, group, resource, namespace, name string) Known {
	known := s.graph.Related(at, node, group, resource, namespace, name)
	if s.unrelated(instant.Of(at)) {
		return Unknown
	}
	return known
}

// RelatedWithin tells what Related may have answered between two moments.
func (s *State) RelatedWithin(from, to time.Time, node, group, resource, namespace, name string) graph.Answers {
	answers := s.graph.RelatedWithin(from, to, node, group, resource, namespace, name)
	if s.unrelated(instant.Of(from)) {
		answers |= 1 << Unknown
	}
	return answers
}

// Signer returns the signer that a certificate signing request named at a moment. It never changes while the request exists. known is also
// Unknown if the request exists but its content was not recorded.
func (s *State) Signer(name string, at time.Time) (signer string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st, known := s.lookup(kept.Key{Resource: kept.ResSigning, Name: name}, instant.Of(at))
	if known != Present {
		return "", known
	}
	if f := st.content.Signing(); f != nil && f.Signer != "" {
		return f.Signer, Present
	}
	return "", Unknown
}

// Account names a service account.
type Account struct{ Namespace, Name string }

// ServiceAccounts returns the service accounts that were there at a moment, by namespace and
// name. complete is false if others may have existed that the State does not know of, or of which it does not know whether they existed.
func (s *State) ServiceAccounts(at time.Time) (there []Account, complete bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	when := instant.Of(at)
	complete = !s.unseen(kept.Key{Resource: kept.ResServiceAccount}, when, when)
	for k := range s.objects[kept.ResServiceAccount] {
		if k.Name == "" {
			continue
		}
		switch _, known := s.lookup(k, when); known {
		case Present:
			there = append(there, Account{k.Namespace, k.Name})
		case Unknown:
			complete = false
		}
	}
	sort.Slice(there, func(i, j int) bool {
		a, b := there[i], there[j]
		return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Name < b.Name
	})
	return there, complete
}
