package query

import "context"

// Questions returns all questions. A log answers all of them, and refuses actions.
func (s *Service) Questions() []Question {
	list := []Question{
		NewQuestion(CostQuery, "the clusters there are", s.Clusters),
		NewQuestion(CostQuery, "who may make a request", s.WhoCan),
		NewQuestion(CostQuery, "what a subject may do", s.Can),
		NewQuestion(CostQuery, "which accesses became possible or impossible", s.Changes),
		NewQuestion(CostQuery, "who can become cluster administrator, and how", s.Escalations),
		NewQuestion(CostQuery, "what is idle or wrong in a policy", s.Hygiene),
		NewQuestion(CostPage, "a range of time, summed up", inSQL(s, s.Overview)),
		NewQuestion(CostPage, "requests with their verdicts", inSQL(s, s.Events)),
		NewQuestion(CostPage, "which values requests have, and how often", inSQL(s, s.Facets)),
		NewQuestion(CostPage, "how many requests there were, step by step", inSQL(s, s.Histogram)),
		NewQuestion(CostPage, "names that begin with a text, or contain it", inSQL(s, s.Complete)),
		NewQuestion(CostQuery, "everything about the requests of an audit ID", s.Why),
		NewQuestion(CostQuery, "why requests were refused", s.ExplainDeny),
		NewQuestion(CostPage, "what was refused, and why", inSQL(s, s.Refusals)),
		NewQuestion(CostPage, "what was written to the policy, and what came of it", inSQL(s, s.PolicyChanges)),
		NewQuestion(CostPage, "what was done for the first time", inSQL(s, s.FirstUses)),
		NewQuestion(CostPage, "who holds what is dangerous, and whether it is used", inSQL(s, s.Dangers)),
		NewQuestion(CostNothing, "what outcomes and classes mean", s.Classes),
		NewQuestion(CostPage, "what does not match, by likely cause", s.Drift),
		NewQuestion(CostQuery, "the life of credentials", s.Lineage),
		NewQuestion(CostQuery, "what a subject did, could do and never did", inSQL(s, s.Subject)),
		NewQuestion(CostHistory, "the least roles that subjects need", s.Suggest),
		NewQuestion(CostHistory, "what a draft of roles and bindings would refuse and allow", s.WhatIf),
		NewQuestion(CostPage, "what detections found", s.Findings),
		NewQuestion(CostNothing, "the rules that detect", s.Rules),
		NewQuestion(CostQuery, "what apiservers sent and what of it is missing", inSQL(s, s.Completeness)),
		NewQuestion(CostQuery, "a question that has a name", inSQL(s, s.Ask)),
		NewQuestion(CostNothing, "how far the replay is behind", s.Status),
		NewQuestion(CostNothing, "wait until everything accepted is stored", s.Drained),
		NewQuestion(CostQuery, "who asked what", inSQL(s, s.QueryLog)),
		NewQuestion(CostQuery, "the jobs that judge again", s.RejudgeJobs),
		NewQuestion(CostQuery, "judge stored requests again", s.Rejudge),
	}
	for i := range list {
		if q := &list[i]; s.Offline && q.Action {
			q.Ask = func(context.Context, any) (any, error) {
				return nil, Bad("%s changes what is stored, and a log is not stored: import it with retrial import, and ask the server",
					q.Name)
			}
		}
	}
	return list
}
