package replay

import (
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/review"
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
	c := &ReviewCheck{Kind: q.Kind, User: q.User.Username, Groups: q.User.Groups, Attributes: q.Attributes, Reason: answered.Reason}
	t.v.Review = c
	c.Recorded = DecisionForbid
	if answered.Allowed {
		c.Recorded = DecisionAllow
	}
	if !ok {
		c.Outcome, c.Cause = OutcomeIndeterminate, "the question is not recorded"
		return
	}
	// The replica's answer follows from the question alone.
	ans := t.base.authorize(&q.User, &q.Attributes, t.bufs.other)
	t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
	c.Replayed = ans.Decision
	if c.Replayed == DecisionError {
		c.Replayed = DecisionForbid // a review is answered with the error, and not allowed
	}
	rec := record{decision: c.Recorded, reason: answered.Reason}
	agrees := func(ans *authz.Answer) bool {
		if answered.Error != "" && !answered.Allowed {
			return ans.Decision == DecisionError || ans.CanFail()
		}
		ok, _ := agreesWith(ans, &rec, t.bufs.reason)
		return ok
	}
	lacks := ans.Decision == DecisionNone || ans.Free()
	missing, nodes := ans.Missing(), ans.NodeAsked()
	if agrees(&ans) {
		c.Outcome = OutcomeMatch
		return
	}
	said := replayedText(&ans)
	for _, other := range t.candidates(nodes) {
		ans := other.moment.authorize(&q.User, &q.Attributes, t.bufs.other)
		t.bufs.other = keep(t.bufs.other, ans.RBAC.Grants)
		if agrees(&ans) {
			c.Outcome, c.Cause = OutcomeAmbiguous, "the answer agrees with the "+other.text
			return
		}
		lacks = lacks || ans.Decision == DecisionNone || ans.Free()
	}
	if lacks {
		c.Outcome, c.Cause = OutcomeIndeterminate, "not known: "+strings.Join(missing, ", ")
		return
	}
	c.Outcome = OutcomeDrift
	c.Cause = "answered " + c.Recorded.String() + " " + strconv.Quote(clip(answered.Reason)) + ", by the policy of that time " + said
	t.v.find(review.FindingAnswer, clip(q.User.Username)+": "+c.Cause)
}

// replayedText is an answer in a few words.
func replayedText(ans *authz.Answer) string {
	if ans.Decision == DecisionAllow {
		if ans.ByRBAC() {
			return "allow " + strconv.Quote(clip(string(ans.RBAC.Grants[0].AppendReason(nil))))
		}
		return "allow by " + ans.Authorizer
	}
	return ans.Decision.String() + " " + strconv.Quote(clip(ans.Refusal()))
}

// tokenReview judges the user a TokenReview found as if they had made the request themselves.
func (t *trial) tokenReview() {
	answered, recorded := review.Answered(t.e)
	if !recorded {
		return
	}
	c := &ReviewCheck{Kind: review.Token, User: answered.User.Username, Groups: answered.User.Groups, Recorded: DecisionForbid, Reason: answered.Error}
	t.v.Review = c
	if !answered.Allowed {
		c.Outcome, c.Cause = OutcomeNotJudged, "the token is not recorded, nor who it would have been: "+clip(answered.Error)
		return
	}
	c.Recorded = DecisionAllow
	found := event.Event{
		Stage: t.e.Stage, User: answered.User, Verb: t.e.Verb, RequestURI: t.e.RequestURI,
		RequestReceivedTimestamp: t.e.RequestReceivedTimestamp, StageTimestamp: t.e.StageTimestamp,
	}
	r := t.evaluateIdentity(&found)
	if len(r.Findings) == 0 {
		c.Outcome, c.Replayed = OutcomeMatch, DecisionAllow
		return
	}
	f := r.Findings[0]
	c.Outcome, c.Replayed = OutcomeDrift, DecisionForbid
	c.Cause = f.Name + ": " + f.Evidence
	t.v.find(review.FindingToken, c.Cause)
}
