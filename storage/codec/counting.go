package codec

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/verdict"
)

// This file says what the current row of a block is counted under.

// who is whom a request or a check is counted for.
type who struct {
	subject string
	groups  uint64 // key of the set
}

// whoIs returns whom an access of a user is counted for. was is as for count; acting says that somebody else acts as the user.
func (b *Block) whoIs(r *verdict.Row, u *event.User, acting bool, a *verdict.Attributes, was []uint64) who {
	own := who{u.Username, GroupSet(u.Groups)}
	noGroups, nobody := who{u.Username, OtherGroups}, who{Other, OtherSubject}
	if len(was) > 0 {
		for _, as := range [...]who{own, noGroups, nobody} {
			w := ways{&b.hash, as, a, FoldName(a.Name), FoldPath(a.Path)}
			if _, ok := w.among(was); ok {
				return as
			}
		}
	}
	subject, groups := b.folds.admitSet(accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, u.Username, own.groups, acting)
	switch {
	case !subject:
		b.FoldedAs["subject"]++
		return nobody
	case !groups:
		b.FoldedAs["groups"]++
		return noGroups
	}
	return own
}

// countFirst returns the bit of a row whose keys of first-seen rules are not kept individually: whoever may ask for anything, or act as
// anybody, can make up keys. A stored row, or one it replaces, is counted as before.
func (b *Block) countFirst(r *verdict.Row) uint8 {
	switch {
	case r.FirstOther:
		return shapeFirstOther
	case r.Sign < 0:
		return 0
	}
	for _, m := range r.Marks {
		if rule, ok := strings.CutSuffix(m.Name, verdict.MarkFirst); ok &&
			!b.folds.admitFirst(accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, r.Event.User.Username, rule, m.Key) {
			b.FoldedAs["first-seen"]++
			return shapeFirstOther
		}
	}
	return 0
}

// countAgent returns the bit of a row whose user agent is counted with others. A stored row, or one it replaces, is counted as before.
func (b *Block) countAgent(r *verdict.Row, subject string) uint8 {
	switch {
	case r.AgentOther || b.at.who.groups == OtherSubject:
		return shapeAgentOther
	case len(r.Counted) > 0 || refusedNobody(subject, r.Verdict): // the view knows nobody
		return 0
	case b.folds.admitAgent(accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, subject, r.Event.UserAgent):
		return 0
	}
	b.FoldedAs["agent"]++
	return shapeAgentOther
}

// counted is what a request or a check is counted under.
type counted struct {
	key        uint64
	name, path string
}

// ways are what an access of somebody can be counted under: its own, its kind, and the rest.
type ways struct {
	hash       *hasher
	who        who
	a          *verdict.Attributes
	name, path string
}

func (w *ways) own() counted {
	return counted{accessKey(w.hash, w.who.subject, w.who.groups, w.a, w.name, w.path), w.name, w.path}
}

func (w *ways) kind() counted {
	return counted{accessKey(w.hash, w.who.subject, w.who.groups, w.a, Other, w.path), Other, w.path}
}

func (w *ways) other() counted {
	return counted{accessKey(w.hash, w.who.subject, w.who.groups, &verdict.Attributes{Verb: Other}, "", Other), "", Other}
}

// among returns what a row that is stored under any of some keys is counted under.
func (w *ways) among(was []uint64) (counted, bool) {
	for _, way := range [...]func() counted{w.own, w.kind, w.other} {
		if c := way(); slices.Contains(was, c.key) {
			return c, true
		}
	}
	return counted{}, false
}

// count returns what an access is counted under. was has the keys of the row, or of the one it replaces, in the store: it stays counted as
// it was.
func (b *Block) count(r *verdict.Row, as who, a *verdict.Attributes, was []uint64) counted {
	w := ways{&b.hash, as, a, FoldName(a.Name), FoldPath(a.Path)}
	if len(was) > 0 {
		if c, ok := w.among(was); ok {
			return c
		}
	}
	switch {
	case as.groups == OtherSubject: // said by who
		return w.other()
	case refusedNobody(as.subject, r.Verdict):
		b.FoldedAs["nobody"]++
		return w.other()
	}
	at, whose, own := accessDay{r.Cluster, Day(r.Event.RequestReceivedTimestamp)}, xxhash.Sum64String(as.subject), w.own()
	if b.folds.admit(at, whose, own.key, false) {
		return own
	}
	if a.ResourceRequest {
		if c := w.kind(); b.folds.admit(at, whose, c.key, true) {
			b.FoldedAs["kind"]++
			return c
		}
	}
	b.FoldedAs["other"]++
	return w.other()
}

// refusedNobody reports whether a request of nobody in particular was refused, or failed to say
// whose it is. Anybody who reaches the apiserver can send any number of them.
func refusedNobody(subject string, v *verdict.Verdict) bool {
	return (subject == "" || subject == kubenames.Anonymous) && v.Recorded != verdict.DecisionAllow
}
