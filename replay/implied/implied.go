// Package implied derives from a request the checks that a kube-apiserver makes behind its
// authorization filter: the right to create pods/exec of a websocket, to escalate or bind of a
// role or binding that is written, to approve for a signer, and the others that docs/implied.md
// lists. They go to the same authorizers, leave no event of their own, and break whoever loses
// the right.
//
//	Event + Attributes + APIServer + State ──Of──▶ Checks ──(the engine's chain)──▶ answers
//	Event's response ──Shown, Recorded──▶ which were made, and what they answered
//
// Of is blind: it reads who asked for what, the bodies and the state, never the response's
// status. What only a response tells (that an update created its object) comes from Shown, and
// what it tells of an answer from Recorded; the answers themselves are the replica's.
//
// The package is pure. It mirrors, fact by fact, the registries and admission plugins of
// k8s.io/kubernetes that ask an authorizer.
package implied

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// Contradictions on implied checks and on impersonation. The set is closed; verdicts list them beside
// the contradictions on identity of package authn.
const (
	ContradictionMismatch       = "implied-check-mismatch"
	ContradictionUnauthorized   = "impersonation-unauthorized"
	ContradictionAccountUnknown = "impersonated-sa-unknown"
)

// Check is one question to the authorizers. It passes when they allow Attributes, or one of Or,
// or when the subject covers the rules.
type Check struct {
	Name       string
	Attributes verdict.Attributes
	// Or are asked one after the other when Attributes are refused.
	Or []verdict.Attributes
	// Rules, or those of the role that Ref names, being held by the subject in the namespace of
	// Attributes is as good. Full: a subject that is not allowed to escalate needs full authority
	// besides, because the role aggregates others.
	Cover bool
	Rules []rbacv1.PolicyRule
	Ref   *rbacv1.RoleRef
	Full  bool
	// PerhapsFull: it is not known whether the role did.
	PerhapsFull bool
	// Perhaps says why it is not certain that the apiserver asked, "" if it is.
	Perhaps string
	// Open names what is not known of the check: a refusal of all above is none then. When
	// Attributes have no verb, nothing can be asked.
	Open []string
}

// Known is three-valued knowledge of an object.
type Known = graph.Known

// Knowledge.
const (
	Unknown = graph.Unknown
	Absent  = graph.Absent
	Present = graph.Present
)

// Role is what a role was before a write.
type Role struct {
	Rules      []rbacv1.PolicyRule
	Aggregates bool // has an aggregationRule with selectors
}

// State is what is known of a cluster when a request came.
type State interface {
	// Role returns a ClusterRole, or with a namespace a Role.
	Role(namespace, name string) (Role, Known)
	// Binding returns role and subjects of a ClusterRoleBinding, or with a namespace of a
	// RoleBinding.
	Binding(namespace, name string) (rbacv1.RoleRef, []rbacv1.Subject, Known)
	// Signer returns the signer of a CertificateSigningRequest.
	Signer(name string) (string, Known)
}

const (
	groupCertificates = "certificates.k8s.io"
	groupAdmission    = "admissionregistration.k8s.io"
	groupResource     = "resource.k8s.io"
)

// Of returns the checks that a request implies, nil for most. cfg and s may be nil: then nothing
// is known of the configuration, or of the cluster. A request that implies nothing costs a few
// comparisons of strings.
//
// Strings of the result alias the event.
func Of(e *event.Event, a *verdict.Attributes, cfg *config.APIServer, s State) []Check {
	if !a.ResourceRequest {
		return nil
	}
	d := derivation{e: e, a: a, cfg: cfg, s: s}
	switch a.Verb {
	case request.VerbGet:
		if a.Subresource == "" {
			return nil
		}
		d.websocket()
		return d.out
	case request.VerbDelete:
		d.unsafeDelete()
		return d.out
	case request.VerbCreate, request.VerbUpdate, request.VerbPatch:
	default:
		return nil
	}
	switch a.APIGroup {
	case "":
		if a.Subresource == "token" && a.Resource == "serviceaccounts" {
			d.audience()
		}
	case rbacv1.GroupName:
		if a.Subresource == "" {
			d.policy()
		}
	case groupCertificates:
		d.signer()
	case groupAdmission:
		if a.Subresource == "" {
			d.params()
		}
	case groupResource:
		if a.Subresource == "status" && a.Resource == "resourceclaims" {
			d.claim()
		}
	}
	if cfg != nil && len(cfg.Admission.Enabled) > 0 {
		d.owners()
	}
	return d.out
}

// derivation is one call of Of.
type derivation struct {
	e   *event.Event
	a   *verdict.Attributes
	cfg *config.APIServer
	s   State
	out []Check
}

func (d *derivation) add(c Check) { d.out = append(d.out, c) }

// superuser reports whether the effective user is in system:masters, whom the registries do not
// ask about at all.
func (d *derivation) superuser() bool {
	return slices.Contains(d.e.EffectiveUser().Groups, authn.GroupMasters)
}

// feature returns whether a feature is on that came, switched on, with a version, and why it is
// not certain.
func (d *derivation) feature(gate, since string) (on bool, perhaps string) {
	if d.cfg == nil {
		return true, "the apiserver's version is not known: before " + since + " it did not ask"
	}
	return d.cfg.Enabled(gate), ""
}

// What is lacking of a request whose event has no body, or none to go by.
const (
	bodyUnrecorded = "the request body, which the audit policy does not record"
	bodyLost       = "the request body, which the event does not hold although the audit policy records it"
	bodyUnreadable = "what the request body, which cannot be read, makes of the object"
	bodyUnread     = "the request body, which the apiserver did not read: it refused the request before"
)

// lacksBody says why there is no body, as far as it follows from what was asked for.
func (d *derivation) lacksBody() string {
	switch {
	case len(d.e.RequestObject) > 0:
		return bodyUnreadable
	case d.e.Level == event.LevelRequest, d.e.Level == event.LevelRequestResponse:
		return bodyLost
	}
	return bodyUnrecorded
}

// Unread rewrites what a check lacks of a request that an authorizer refused: its body was in
// nobody's hands, whatever the audit policy records.
func Unread(missing []string) {
	for i, m := range missing {
		if m == bodyUnrecorded || m == bodyLost {
			missing[i] = bodyUnread
		}
	}
}
