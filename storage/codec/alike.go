package codec

import (
	"fmt"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// Alike is a group of requests that agree in everything that matters to what a subject needs: one of them, and their number. Of its event
// only what tells groups apart is set: users, groups, impersonation, the code where a check behind the authorizer depends on it, the checks
// of the verdict, and the bodies of writes to RBAC objects and certificates, which are never grouped.
type Alike struct {
	Event       *event.Event
	Verdict     *verdict.Verdict
	Requests    int64
	First, Last time.Time // bounds: rows that were taken back may widen them
}

// AlikeKeys are the expressions that requests of a group agree in. Requests without a certain verdict are only counted, so their attributes
// do not tell them apart.
const AlikeKeys = `outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants`

// alikeScan reads requests grouped by AlikeKeys.
type alikeScan struct {
	r                                *stored
	byRBAC, acting, granted, certain uint8
	keys                             []string
	values                           [][]string
	requests, first, last            int64
	to                               []any
}

// NewAlikeScan returns a scan of the columns AlikeKeys and answer, with bodies also of request_key, stage, stage_delay, content and the
// three bodies, then of recorded_reason, impersonation_grants, the number of requests and their first and last time.
func NewAlikeScan(bodies bool) *alikeScan {
	r := NewStored()
	a := &alikeScan{r: r}
	v, at := &r.v, &r.v.Attributes
	a.to = []any{
		&r.outcome, &v.Class, &r.recorded, &r.replayed, &v.Authorizer, &a.byRBAC, &r.user.name, &r.user.groups, &a.acting,
		&r.impersonated.name, &r.impersonated.groups, &r.impersonated.uid, &a.keys, &a.values, &r.constraint, &r.imp, &a.granted,
		&a.certain, &r.isResource, &at.Verb, &at.APIGroup, &at.Resource, &at.Subresource, &at.Namespace, &at.Name, &at.Path,
		&r.implied, &r.impliedGrants, &r.code,
	}
	if bodies {
		a.to = append(a.to, &r.request, &r.stage, &r.delay, &r.content, &r.status, &r.requestObject, &r.responseObject)
	}
	a.to = append(a.to, &v.RecordedReason, &r.impGrants, &a.requests, &a.first, &a.last)
	return a
}

// Targets returns where the next requests go.
func (a *alikeScan) Targets() []any {
	a.r.Reset()
	a.keys, a.values = nil, nil
	return a.to
}

// Alike returns the requests that were read.
func (a *alikeScan) Alike() (Alike, error) {
	r := a.r
	if len(a.keys) != len(a.values) {
		return Alike{}, fmt.Errorf("a map has %d keys and %d values", len(a.keys), len(a.values))
	}
	if a.acting != 0 {
		r.shape |= shapeImpersonated
		r.impersonated.extra = make(map[string][]string, len(a.keys))
		for i := range a.keys {
			r.impersonated.extra[a.keys[i]] = a.values[i]
		}
	}
	if r.constraint != "" {
		r.shape |= shapeAuthentication
	}
	if r.code != 0 {
		r.shape |= shapeStatus
	}
	r.received = a.first
	e, err := r.event()
	if err != nil {
		return Alike{}, err
	}
	v, err := r.verdict()
	if err != nil {
		return Alike{}, err
	}
	return Alike{Event: e, Verdict: v, Requests: a.requests, First: FromMicro(a.first), Last: FromMicro(a.last)}, nil
}
