package drift

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// Kinds of likely causes, strongest evidence first. The set is closed.
const (
	// KindContradiction: the event contradicts itself; no apiserver writes that.
	KindContradiction = "tampering"
	// KindVersion: the apiserver runs another version of Kubernetes than the one it was judged by.
	KindVersion = "version"
	// KindConfiguration: the apiserver runs authorizers that Retrial does not know about.
	KindConfiguration = "unseen-configuration"
	// KindAuthorizer: an authorizer whose answers cannot be derived decided.
	KindAuthorizer = "unmodelled-authorizer"
	// KindState: what Retrial knows of an object is not what the apiserver knew.
	KindState = "stale-state"
	// KindLost: a write may have been done, and its outcome was not reported.
	KindLost = "lost-answer"
	// KindLevel: a write was recorded without its content.
	KindLevel = "content-not-recorded"
	// KindGap: nothing is known of that time.
	KindGap = "no-state"
	// KindPods: the pods of a node are not known.
	KindPods = "pods-not-known"
	// KindRace: policy changed while the request was on its way.
	KindRace = "race"
	// KindForged: policy and configuration do not give the recorded answer, and nothing known is in
	// doubt.
	KindForged = "forged-or-changed-record"
)

// Cause is a likely cause, and what to give Retrial to settle it.
type Cause struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`  // evidence for it
	Give string `json:"give"` // what would settle it
}

var ranks = []string{KindContradiction, KindVersion, KindConfiguration, KindAuthorizer, KindLost, KindState, KindLevel, KindGap, KindPods,
	KindRace, KindForged}

func rank(kind string) int { return slices.Index(ranks, kind) }

// Kinds returns every kind, in the order in which they are printed and documented.
func Kinds() []string { return slices.Clone(ranks) }

const (
	giveVersion = "its version: kubernetesVersion in server.yaml of --apiserver-config DIR, or its own requests in the log " +
		"(deploy/audit-policy.yaml keeps them)"
	giveServers = "a name for each apiserver: an endpoint of its own (retrial connect), or import --apiserver NAME for each log"
	giveLog     = "the log file of the apiserver: retrial import"
	giveConfig  = "the apiserver's flags and the files they name: --apiserver-config DIR, then retrial rejudge"
	giveState   = "a listing of that time: retrial import --state FILE, or let Retrial watch the cluster: retrial connect"
	givePods    = "pods, nodes and volumes: a state file that lists them, or let Retrial watch the cluster"
	givePolicy  = "writes to roles, bindings, namespaces and pods at level RequestResponse: deploy/audit-policy.yaml"
)

// causes returns what probably lies behind a verdict that is not a match, most likely first.
func causes(s *Sample) []Cause {
	switch {
	case s.Recorded == verdict.DecisionForbid && s.Code != 0 && s.Code != 403: // executed: no apiserver writes that
		return []Cause{{KindContradiction, "a refusal is recorded, but the response is not a 403: the decision in the record was changed",
			giveLog}}
	case s.Outcome == verdict.OutcomeAmbiguous && s.Class == verdict.ClassVersion:
		return []Cause{{KindVersion, "the configured version is not the apiserver's: " + s.Cause, giveVersion}}
	case s.Outcome == verdict.OutcomeAmbiguous && s.Class == verdict.ClassSeveral:
		return []Cause{{KindConfiguration, "it is not recorded which apiserver answered, and they decide differently: " + s.Cause,
			giveServers}}
	case s.Outcome == verdict.OutcomeAmbiguous:
		return []Cause{{KindRace, "the policy, or the configuration, changed while the request was on its way; the record agrees with " +
			"the state before or after", "nothing: the record is explained"}}
	case s.Outcome == verdict.OutcomeIndeterminate:
		return unknown(s)
	}
	return doubted(s, drifted(s))
}

// doubted puts what was in doubt around the request before the causes of a drift. A record is not
// called forged if an object that its answer depends on was in doubt.
func doubted(s *Sample, likely []Cause) []Cause {
	var out []Cause
	object := false
	for _, m := range s.Missing {
		if why, ok := strings.CutPrefix(m, verdict.DoubtVersion); ok {
			out = append(out, Cause{KindVersion, "it was judged by another version than the apiserver's: " + why, giveVersion})
		}
		if why, ok := strings.CutPrefix(m, verdict.DoubtObject); ok && !object {
			kind := KindState
			if strings.Contains(why, state.LostAnswer) {
				kind = KindLost
			}
			out, object = append(out, Cause{kind, "what it depends on was in doubt around the request: " + why, giveState}), true
		}
	}
	for _, c := range likely {
		if !object || c.Kind != KindForged && c.Kind != KindState {
			out = append(out, c)
		}
	}
	return out
}

// drifted returns what probably lies behind a drift, by the record alone.
func drifted(s *Sample) []Cause {
	configured := strings.Contains(s.Config, ";apiserver=")
	_, rbac := reason.Names(s.RecordedReason)
	switch {
	case rbac && s.Recorded == verdict.DecisionAllow:
		out := []Cause{{KindState, "the recorded reason names an object of which Retrial knows different content: " + s.Cause, giveState}}
		return append(out, Cause{KindForged, "or the record was changed: compare it with the apiserver's own log file", giveLog})
	case strings.HasPrefix(s.RecordedReason, "RBAC: "):
		return []Cause{{KindState, "the authorizer met roles that did not exist, but Retrial knows them as existing", giveState}}
	case s.RecordedReason != "" && reason.BuiltIn(s.RecordedReason):
		return []Cause{{KindPods, "the recorded reason is the node authorizer's own: it knew other pods of the node, or follows other " +
			"rules: " + s.Cause, givePods}}
	case s.RecordedReason != "":
		if configured {
			return []Cause{{KindAuthorizer, "no built-in authorizer writes the recorded reason: it is a webhook's, or that of an " +
				"authorizer missing from the configuration", "the configuration as it was at that time: versions in " +
				"--apiserver-config DIR"}}
		}
		return []Cause{{KindConfiguration, "neither the node nor the RBAC authorizer writes the recorded reason: another authorizer is " +
			"configured", giveConfig}}
	case s.Recorded == verdict.DecisionAllow && !configured:
		return []Cause{
			{KindConfiguration, "allowed without a reason, as ABAC, AlwaysAllow or a webhook do", giveConfig},
			{KindForged, "or the reason was removed from the record", giveLog},
		}
	case s.Recorded == verdict.DecisionForbid:
		return []Cause{
			{KindState, "Retrial knows a grant the apiserver did not know at that time: " + s.Cause, giveState},
			{KindForged, "or the decision was changed in the record", giveLog},
		}
	}
	return []Cause{{KindForged, "policy and configuration do not lead to this record", giveLog}}
}

// unknown returns what an indeterminate verdict would need.
func unknown(s *Sample) []Cause {
	lacks := func(text string) bool {
		return slices.ContainsFunc(s.Missing, func(m string) bool { return strings.Contains(m, text) })
	}
	switch {
	case s.Class == verdict.ClassNoState:
		return []Cause{{KindGap, "the cluster's policy at that time is not known", giveState}}
	case s.Class == verdict.ClassNodeGraph:
		return []Cause{{KindPods, "the node authorizer decides by the pods that run on a node", givePods}}
	case s.Class == verdict.ClassUnknown && lacks(state.LostAnswer):
		return []Cause{{KindLost, "a write timed out, or the apiserver failed on it: it may have been done", giveState}}
	case s.Class == verdict.ClassUnknown && lacks(state.PartRecorded):
		return []Cause{{KindLevel, "an object was written, but not all of its content was recorded: its event was too large, or it " +
			"has no body", giveState}}
	case s.Class == verdict.ClassUnknown:
		return []Cause{{KindLevel, "an object was written, and the write was recorded without the object", giveState + "; from then on " +
			givePolicy}}
	case slices.ContainsFunc(s.Missing, func(m string) bool { return strings.HasPrefix(m, verdict.DoubtVersion) }):
		return []Cause{{KindVersion, "the log does not show the apiserver's version, and a version other than the newest explains the " +
			"record", giveVersion}}
	case s.Class == verdict.ClassAuthorizer:
		return []Cause{{KindAuthorizer, "an authorizer decided that is not built into Kubernetes, such as a cloud's access entries or " +
			"the scopes of a token", giveConfig}}
	case strings.Contains(s.Class, "webhook"):
		return []Cause{{KindAuthorizer, "a webhook decided, and its answers are in no audit event",
			"nothing can be given yet: its answers are not recorded"}}
	case strings.Contains(s.Class, "configuration"):
		return []Cause{{KindConfiguration, "a part of the apiserver's configuration is not known",
			"the missing part: retrial config check DIR names it"}}
	}
	return nil
}
