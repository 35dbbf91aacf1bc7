package implied

import (
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// Answer is what a response tells of a check.
type Answer uint8

// Answers. The zero value is "the response does not tell".
const (
	Silent Answer = iota
	Passed
	Refused
)

// Shown returns the checks that only the response tells to have been made: that an update or
// patch created its object, or would have. To be asked after the replica's own decision.
func Shown(e *event.Event, a *verdict.Attributes) []Check {
	if a.Verb != request.VerbUpdate && a.Verb != request.VerbPatch || !a.ResourceRequest || a.Name == "" {
		return nil
	}
	if e.Code() != 201 && !refusesCreate(e) {
		return nil
	}
	c := Check{Name: verdict.CheckCreateOnUpdate, Attributes: *a}
	c.Attributes.Verb = request.VerbCreate
	return []Check{c}
}

// Recorded returns what the response tells of a check: that it was refused by the words of the
// refusal, that it passed by the request's success. Of a check that may not have been made,
// success says nothing.
func Recorded(c *Check, e *event.Event) Answer {
	code := e.Code()
	switch {
	case code == 0:
		return Silent
	case code < 300: // 101 of a connection among them
		if c.Perhaps != "" {
			return Silent
		}
		return Passed
	case e.ResponseStatus == nil:
		return Silent
	}
	message := e.ResponseStatus.Message
	if refuses(c, code, message, e) {
		return Refused
	}
	if c.Perhaps != "" {
		return Silent
	}
	switch {
	case c.Name == verdict.CheckWebsocket && (code == 404 || code >= 500): // behind the check it looks for the pod, then for its kubelet
		return Passed
	case (c.Name == verdict.CheckRoleEscalate || c.Name == verdict.CheckRoleBind) && code == 409 &&
		strings.HasSuffix(message, " already exists"): // the store's answer
		return Passed
	}
	return Silent
}

// refuses recognises the words of a check's refusal.
func refuses(c *Check, code int32, message string, e *event.Event) bool {
	has := func(text string) bool { return strings.Contains(message, text) }
	switch c.Name {
	case verdict.CheckWebsocket:
		reason, ok := strings.CutPrefix(message, "pods "+strconv.Quote(c.Attributes.Name)+" is forbidden: ")
		return code == 403 && ok && authorizerReason(reason)
	case verdict.CheckRoleEscalate:
		return code == 403 && (has("is attempting to grant RBAC permissions not currently held") ||
			has("must have cluster-admin privileges to use the aggregationRule"))
	case verdict.CheckRoleBind:
		return code == 403 && has("is attempting to grant RBAC permissions not currently held") || roleAbsent(c, e)
	case verdict.CheckCreateOnUpdate:
		return refusesCreate(e)
	case verdict.CheckSignerApprove, verdict.CheckSignerSign:
		verb := c.Attributes.Verb
		return code == 403 && has("user not permitted to "+verb+" requests with signerName ") ||
			has(`is not permitted to "`+verb+`" for signer`)
	case verdict.CheckSignerAttest:
		return code == 403 && has("user not permitted to attest for signerName ")
	case verdict.CheckOwnerDelete:
		return code == 403 && has("cannot set an ownerRef on a resource you can't delete")
	case verdict.CheckOwnerFinalizers:
		return code == 403 && has("cannot set blockOwnerDeletion ")
	case verdict.CheckPolicyParam:
		return has(`must have "get" permission on all objects of the referenced paramKind`) ||
			has(" permission on the object referenced by paramRef") ||
			has(" permission for all groups, versions and resources")
	case verdict.CheckClaimBinding:
		return has("changing status.allocation or status.reservedFor requires ")
	case verdict.CheckClaimDriver:
		return has("changing status.devices requires ") && has(strconv.Quote(c.Attributes.Name))
	case verdict.CheckUnsafeDelete:
		return code == 403 && has("unsafe-delete-ignore-read-errors")
	case verdict.CheckTokenAudience:
		return code == 403 && has(" not found in pod spec volume, ")
	}
	return false
}

// roleAbsent reports whether the response to a binding's write says that its role does not exist.
// The apiserver names the role and, depending on where it looked, the resource of the binding or
// that of the role.
func roleAbsent(c *Check, e *event.Event) bool {
	if e.Code() != 404 || e.ResponseStatus == nil || c.Ref == nil {
		return false
	}
	resource, ok := strings.CutSuffix(e.ResponseStatus.Message, "."+rbacv1.GroupName+" "+strconv.Quote(c.Ref.Name)+" not found")
	if !ok {
		return false
	}
	switch resource {
	case "role", "clusterrole", "roles", "clusterroles":
		return true
	case "rolebindings", "clusterrolebindings":
		// Of an update it may be the binding itself that is not there.
		return e.Verb == request.VerbCreate || e.ObjectRef != nil && e.ObjectRef.Name != c.Ref.Name
	}
	return false
}

// authorizerReason recognises what authorizers say when they do not allow: nothing, most of the
// time, and since 1.37 behind their names. Admission, which refuses the same requests in the same
// form, always says something else.
func authorizerReason(reason string) bool {
	if reason == "" {
		return true
	}
	_, named, _ := strings.Cut(reason, ": ")
	return slices.ContainsFunc([]string{"RBAC: ", "No policy matched.", "Everything is forbidden."},
		func(text string) bool { return strings.HasPrefix(reason, text) || strings.HasPrefix(named, text) })
}

// refusesCreate recognises the authorizer's refusal of create on an update or patch.
func refusesCreate(e *event.Event) bool {
	if e.Code() != 403 || e.ResponseStatus == nil {
		return false
	}
	_, after, ok := strings.Cut(e.ResponseStatus.Message, " is forbidden: User ")
	return ok && strings.Contains(after, ` cannot create resource "`)
}
