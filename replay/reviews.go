package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/review"
	"github.com/retrial-io/retrial/verdict"
)

// review puts the question of a recorded review to the replica, and compares what the
// apiserver answered. The outcome of the request itself, the right to ask, is another matter.
func (t *trial) review() {
	if review.KindOf(&t.v.Attributes) == "" {
		return // as nearly all: before anything is allocated
	}
	q, ok := review.Asked(t.e, &t.v.Attributes)
	if q.Kind == "" {
		return
	}
	if q.Kind == review.Token {
		t.tokenReview()
		return
	}
	answered, recorded := review.Answered(t.e)
	if !recorded {
		return // refused, or not at a level that records bodies
	}
	c := &verdict.ReviewCheck{Kind: q.Kind, User: q.User.Username, Groups: q.User.Groups, Attributes: q.Attributes, Reason: answered.Reason}
	t.v.Review = c
	c.Recorded = verdict.DecisionForbid
	if answered.Allowed {
		c.Recorded = verdict.DecisionAllow
	}
	if !ok {
		c.Outcome, c.Cause = verdict.OutcomeIndeterminate, "the question is not recorded"
		return
	}
	// The replica's answer follows from the question alone.
	ans := t.ask(&t.base, &q.User, &q.Attributes)
	c.Replayed = ans.Decision
	if c.Replayed == verdict.DecisionError {
		c.Replayed = verdict.DecisionForbid // a review is answered with the error, and not allowed
	}
	rec := record{decision: c.Recorded, reason: answered.Reason}
	agrees := func(ans *authz.Answer) bool {
		if answered.Error != "" && !answered.Allowed {
			return ans.Decision == verdict.DecisionError || ans.CanFail()
		}
		ok, _ := agreesWith(ans, &rec, t.bufs.reason)
		return ok
	}
	lacks := ans.Decision == verdict.DecisionNone || ans.Free()
	missing, nodes := ans.Missing(), ans.NodeAsked()
	if agrees(&ans) {
		c.Outcome = verdict.OutcomeMatch
		return
	}
	said := replayedText(&ans)
	for _, other := range t.candidates(nodes) {
		ans := t.ask(&other.moment, &q.User, &q.Attributes)
		if agrees(&ans) {
			c.Outcome, c.Cause = verdict.OutcomeAmbiguous, "the answer agrees with the "+other.text
			return
		}
		lacks = lacks || ans.Decision == verdict.DecisionNone || ans.Free()
	}
	if lacks {
		c.Outcome, c.Cause = verdict.OutcomeIndeterminate, "not known: "+strings.Join(missing, ", ")
		return
	}
	c.Outcome = verdict.OutcomeDrift
	c.Cause = "answered " + c.Recorded.String() + " " + strconv.Quote(verdict.Clip(answered.Reason)) +
		", by the policy of that time " + said
	t.v.AddContradiction(review.ContradictionAnswer, verdict.Clip(q.User.Username)+": "+c.Cause)
}

// replayedText returns an answer in a few words.
func replayedText(ans *authz.Answer) string {
	if ans.Decision == verdict.DecisionAllow {
		if ans.ByRBAC() {
			return "allow " + strconv.Quote(verdict.Clip(string(ans.RBAC.Grants[0].AppendReason(nil))))
		}
		return "allow by " + ans.Authorizer
	}
	return ans.Decision.String() + " " + strconv.Quote(verdict.Clip(ans.Refusal()))
}

// tokenReview judges the user a TokenReview found as if they had made the request themselves.
func (t *trial) tokenReview() {
	answered, recorded := review.Answered(t.e)
	if !recorded {
		return
	}
	c := &verdict.ReviewCheck{Kind: review.Token, User: answered.User.Username, Groups: answered.User.Groups,
		Recorded: verdict.DecisionForbid, Reason: answered.Error}
	t.v.Review = c
	if !answered.Allowed {
		c.Outcome, c.Cause = verdict.OutcomeNotJudged, "the token is not recorded, nor who it would have been: "+
			verdict.Clip(answered.Error)
		return
	}
	c.Recorded = verdict.DecisionAllow
	found := event.Event{
		Stage: t.e.Stage, User: answered.User, Verb: t.e.Verb, RequestURI: t.e.RequestURI,
		RequestReceivedTimestamp: t.e.RequestReceivedTimestamp, StageTimestamp: t.e.StageTimestamp,
	}
	r := t.evaluateIdentity(&found)
	if len(r.Contradictions) == 0 {
		c.Outcome, c.Replayed = verdict.OutcomeMatch, verdict.DecisionAllow
		return
	}
	f := r.Contradictions[0]
	c.Outcome, c.Replayed = verdict.OutcomeDrift, verdict.DecisionForbid
	c.Cause = f.Name + ": " + f.Evidence
	t.v.AddContradiction(review.ContradictionToken, c.Cause)
}
