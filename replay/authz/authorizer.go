package authz

import (
	"sync/atomic"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// authorizer is one authorizer of a chain, as it is configured. What of an answer is an
// authorizer's own is kept in the Answer: authorizers are shared by all requests.
type authorizer interface {
	// ask answers a request, or says that it is not asked, or that the answer is not known. It
	// notes in the answer what the other methods need, and what kind of thing is lacking.
	ask(ans *Answer, u *event.User, a *verdict.Attributes, m *Moment) stepState
	// silence is what it adds to the reason of a refusal where it has no opinion, "" for nothing.
	silence(ans Answer) string
	// missing names what is not known of an answer that is not.
	missing(ans Answer) string
	// explain says why it did not allow the request, and what nearly did, at most limit things.
	explain(s *Shortfall, ans Answer, u *event.User, a *verdict.Attributes, m *Moment, limit int)
}

// traits are what the chain has to know of an authorizer besides its answers.
type traits struct {
	local   bool // a delegating server asks it itself, and not its kube-apiserver
	safe    bool // it cannot fail
	free    bool // its answer is in no log, and can have been anything
	silent  bool // it allows without a reason, and what it allows is not always known
	screens bool // where its answer is not known, neither is whether anybody behind it was asked
}

// quiet is what authorizers have in common that add nothing to a refusal and whose answer is always known.
type quiet struct{}

func (quiet) silence(Answer) string { return "" }
func (quiet) missing(Answer) string { return "" }

// registered is an authorizer with its traits.
type registered struct {
	authorizer
	traits
}

// Chain is the authorizers of one configuration, compiled. It is immutable but for a memory
// of answers already worded, and safe for concurrent use.
type Chain struct {
	links     []link // masters first
	delegated bool
	assumed   bool   // nothing was said about the configuration
	naming    naming // of reasons, by the kube-apiserver
	outer     naming // and by the aggregated server in front of it
	steps     stepMemory
}

// naming reports whether the reasons of a refusal have the names of their authorizers before them.
type naming uint8

const (
	unnamed naming = iota
	named
	eitherNaming // the release is not known
)

// link is one authorizer of a chain.
type link struct {
	name string
	registered
}

// Moment is what authorizers decide by besides their configuration: the policy as of one
// time. It is used by one goroutine at a time.
type Moment struct {
	At    time.Time
	View  *state.View // nil: no state at all
	Graph node.Graph  // nil: nothing is known of pods

	// Steps bounds the work of all that is asked of RBAC; nil: unbounded.
	Steps *rbacindex.Steps

	// What RBAC is asked, where its grants go, and the answer: here, so that asking allocates
	// nothing.
	query  rbacindex.Attributes
	grants []rbacindex.Grant
	answer Answer
}

// Lack says what kind of thing is not known that could change an answer. Where several are
// not, the greatest is named.
type Lack uint8

// Lacks.
const (
	LackNothing   Lack = iota
	LackNodeGraph      // which objects belong to a node
	LackConfig         // part of the configuration
	LackObject         // a role or binding
	LackState          // all of a kind of object, or everything
	LackTime           // the answer takes more work than an event is given
)

// Answer is what a chain says about one request at one moment.
type Answer struct {
	// Decision is None when what is not known could change it, see Lack. A free authorizer
	// does not make it None: it is then what all others decide, see Free.
	Decision verdict.Decision
	// Authorizer decided, by its name in the configuration; "" if none did by itself.
	Authorizer string
	// RBAC is RBAC's answer, zero if it was not asked. Its Grants use the caller's buffer.
	RBAC rbacindex.Result
	// Lack is why Decision is None.
	Lack Lack
	// Line of the ABAC policy file that allows it, from 1; 0 for none.
	Line int

	chain  *Chain
	by     int    // index of the link that decided, -1 for none
	free   int    // index of the first link that can have answered anything, -1 for none
	code   uint64 // three bits a link, stepState
	failed bool   // one that has no opinion failed
	node   node.Answer
	unseen []string // what is not known of RBAC's objects; empty with RBAC unknown: everything
}

// stepState is what became of one link.
type stepState uint64

const (
	notAsked stepState = iota
	noOpinion
	allowed
	denied  // refused because it failed
	unknown // asked; the answer is not known
	skipped // a match condition keeps it out
	broken  // no opinion because it failed
)

func (ans *Answer) state(i int) stepState { return stepState(ans.code>>(3*i)) & 7 }

func (ans *Answer) lack(l Lack) { ans.Lack = max(ans.Lack, l) }

// Shortfall is what one authorizer of a chain would have needed to allow a request, for
// people.
type Shortfall struct {
	Authorizer string `json:"authorizer"`
	Answer     string `json:"answer"` // one of the Answer constants
	// Text says in one line why it did not allow the request, or that it did.
	Text string `json:"text"`
	// Almost are what nearly allowed it, a line each: lines of the ABAC policy file that are
	// for the user and differ in one thing.
	Almost []string `json:"almost,omitempty"`
	// RBAC tells of rules, roles and bindings; nil for other authorizers and when RBAC's
	// objects are not known.
	RBAC *rbacindex.Miss `json:"-"`
}

// stepMemory keeps the steps of answers that say nothing particular, which nearly all are:
// they are shared by all verdicts.
type stepMemory struct {
	known atomic.Pointer[[]wordedSteps]
}

type wordedSteps struct {
	code  uint64
	steps []verdict.ChainStep
}
