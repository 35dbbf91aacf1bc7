package verdict

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
)

// Line is one verdict as `retrial evaluate -o jsonl` prints it. Names are part of the
// command's interface.
type Line struct {
	AuditID                  string      `json:"auditID"`
	RequestURI               string      `json:"requestURI"`
	RequestReceivedTimestamp string      `json:"requestReceivedTimestamp"` // RFC 3339, microseconds, UTC
	User                     string      `json:"user"`
	ImpersonatedUser         string      `json:"impersonatedUser,omitempty"`
	Verb                     string      `json:"verb"`
	Stage                    string      `json:"stage"`
	Recorded                 string      `json:"recorded"`
	RecordedReason           string      `json:"recordedReason,omitempty"`
	Replayed                 string      `json:"replayed"`
	Outcome                  string      `json:"outcome"`
	Verdict                  string      `json:"verdict"` // the outcome; the name will be removed in the next release
	Class                    string      `json:"class"`
	Cause                    string      `json:"cause"`
	Authorizer               string      `json:"authorizer"`
	Grants                   []GrantLine `json:"grants"`
	Errors                   []string    `json:"errors,omitempty"`
	Missing                  []string    `json:"missing,omitempty"`

	Impersonation *ImpersonationLine `json:"impersonation,omitempty"`
	Identity      []string           `json:"identity,omitempty"`
	Evidence      []string           `json:"evidence,omitempty"`  // of each entry of Identity
	Explained     []string           `json:"explained,omitempty"` // authenticators, by name
	Credential    string             `json:"credential,omitempty"`
	Admission     *AdmissionLine     `json:"admission,omitempty"`
	Chain         []ChainStep        `json:"chain,omitempty"` // authorizers, in the order asked
	Implied       []ImpliedLine      `json:"implied,omitempty"`
	Review        *ReviewLine        `json:"review,omitempty"`

	Engine string `json:"engine"`
	Config string `json:"config"`
}

// GrantNames names a grant, in every answer alike. Objects are written Kind/name or Kind/namespace/name.
type GrantNames struct {
	Binding string `json:"binding"` // that gives it, Kind/name or Kind/namespace/name
	Role    string `json:"role"`    // that the binding names, in the same form
	Subject string `json:"subject"` // as the binding names it, in the same form
	Rule    int    `json:"rule"`    // index in the role's rules
}

// GrantLine is one grant in a Line.
type GrantLine struct {
	GrantNames
	Reason string `json:"reason"` // as an apiserver words it
}

// ImpersonationLine is the impersonation check in a Line.
type ImpersonationLine struct {
	Replayed string      `json:"replayed"`
	Recorded string      `json:"recorded"`
	Mode     string      `json:"mode"`
	Grants   []GrantLine `json:"grants"`
	Missing  []string    `json:"missing,omitempty"`
	Cause    string      `json:"cause,omitempty"`
}

// AdmissionLine is what is known of admission in a Line.
type AdmissionLine struct {
	// Recorded is not-run, admitted or rejected.
	Recorded string `json:"recorded,omitempty"`
	// Answers are those of the plugin that refused the request, and of each that was evaluated again.
	Answers []AdmissionAnswer `json:"answers,omitempty"`
	// Plugin is the one that refused the request. It will be removed in the next release: see answers.
	Plugin string `json:"plugin,omitempty"`
	// NamespaceLifecycle is that plugin's outcome. It will be removed in the next release: see answers.
	NamespaceLifecycle string `json:"namespaceLifecycle,omitempty"`
}

// ImpliedLine is one check behind the authorization filter in a Line.
type ImpliedLine struct {
	Check    string      `json:"check"`
	Asked    string      `json:"asked,omitempty"` // verb, resource, namespace and name in one line
	Replayed string      `json:"replayed"`
	Recorded string      `json:"recorded"`
	Covered  bool        `json:"covered,omitempty"`
	Perhaps  string      `json:"perhaps,omitempty"`
	Grants   []GrantLine `json:"grants,omitempty"`
	Missing  []string    `json:"missing,omitempty"`
}

// ReviewLine is a review's recorded answer in a Line, compared.
type ReviewLine struct {
	Kind     string   `json:"kind"`
	User     string   `json:"user"`
	Groups   []string `json:"groups,omitempty"`
	Asked    string   `json:"asked,omitempty"`
	Recorded string   `json:"recorded"`
	Replayed string   `json:"replayed"`
	Reason   string   `json:"reason,omitempty"`
	Outcome  string   `json:"outcome"`
	Verdict  string   `json:"verdict"` // the outcome; the name will be removed in the next release
	Cause    string   `json:"cause,omitempty"`
}

// Line returns the verdict on e as a Line. Grants is never null in JSON.
func (v *Verdict) Line(e *event.Event) Line {
	l := Line{
		AuditID: e.AuditID, RequestURI: e.RequestURI,
		RequestReceivedTimestamp: e.RequestReceivedTimestamp.UTC().Format(TimestampFormat),
		User:                     e.User.Username, Verb: e.Verb, Stage: string(e.Stage),
		Recorded: v.Recorded.String(), RecordedReason: v.RecordedReason, Replayed: v.Replayed.String(),
		Outcome: v.Outcome.String(), Verdict: v.Outcome.String(), Class: v.Class, Cause: v.Cause, Authorizer: v.Authorizer,
		Grants: grantLines(v.Grants), Errors: v.Errors, Missing: v.Missing, Identity: v.Identity,
		Evidence: v.Evidence, Explained: v.Explained, Credential: v.Credential, Chain: v.Chain,
		Engine: v.Engine, Config: v.Config,
	}
	if e.ImpersonatedUser != nil {
		l.ImpersonatedUser = e.ImpersonatedUser.Username
	}
	if c := v.Impersonation; c != nil {
		l.Impersonation = &ImpersonationLine{
			Replayed: c.Replayed.String(), Recorded: c.Recorded.String(), Mode: c.Mode, Grants: grantLines(c.Grants), Missing: c.Missing,
			Cause: c.Cause,
		}
	}
	if a := &v.Admission; a.Recorded != "" || len(a.Answers) > 0 {
		l.Admission = &AdmissionLine{Recorded: a.Recorded, Answers: a.Answers, Plugin: a.Plugin(),
			NamespaceLifecycle: a.NamespaceLifecycle()}
	}
	for i := range v.Implied {
		c := &v.Implied[i]
		line := ImpliedLine{Check: c.Check, Asked: askedText(&c.Attributes), Replayed: c.Replayed.String(), Recorded: c.Recorded.String(),
			Covered: c.Covered, Perhaps: c.Perhaps, Missing: c.Missing}
		if len(c.Grants) > 0 {
			line.Grants = grantLines(c.Grants)
		}
		l.Implied = append(l.Implied, line)
	}
	if r := v.Review; r != nil {
		l.Review = &ReviewLine{Kind: r.Kind, User: r.User, Groups: r.Groups, Asked: askedText(&r.Attributes),
			Recorded: r.Recorded.String(), Replayed: r.Replayed.String(), Reason: r.Reason, Outcome: r.Outcome.String(),
			Verdict: r.Outcome.String(),
			Cause:   r.Cause}
	}
	return l
}

// askedText returns what an authorizer was asked for in one line: "create pods/exec shop/web-0",
// "get deployments.apps shop/", "get /metrics". Empty for no request.
func askedText(a *Attributes) string {
	text := strings.TrimSpace(a.what())
	switch {
	case !a.ResourceRequest:
	case a.Namespace != "":
		text += " " + a.Namespace + "/" + a.Name
	case a.Name != "":
		text += " " + a.Name
	}
	return text
}

// AppendLine appends the verdict on e as one line of JSON, with its line break.
func (v *Verdict) AppendLine(dst []byte, e *event.Event) ([]byte, error) {
	line := bytes.NewBuffer(dst)
	enc := json.NewEncoder(line)
	enc.SetEscapeHTML(false) // the & of a request URI is to be found by grep
	if err := enc.Encode(v.Line(e)); err != nil {
		return dst, err
	}
	return line.Bytes(), nil
}

// TimestampFormat is how times are printed beside a verdict: RFC 3339, microseconds.
const TimestampFormat = "2006-01-02T15:04:05.000000Z07:00"

func grantLines(grants []Grant) []GrantLine {
	out := make([]GrantLine, len(grants))
	for i := range grants {
		out[i] = GrantLine{Reason: grants[i].Reason, GrantNames: grants[i].Names()}
	}
	return out
}

// Names returns what the grant consists of, as answers name it.
func (g *Grant) Names() GrantNames {
	roleNamespace := ""
	if g.RoleKind == "Role" {
		roleNamespace = g.BindingNamespace
	}
	return GrantNames{
		Binding: objectPath(g.BindingKind, g.BindingNamespace, g.Binding), Role: objectPath(g.RoleKind, roleNamespace, g.Role),
		Subject: objectPath(g.SubjectKind, g.SubjectNamespace, g.Subject), Rule: g.Rule,
	}
}

func objectPath(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}
