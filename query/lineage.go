package query

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
)

// usesOfCredential is how many places of use of a credential an answer lists.
const usesOfCredential = 200

// LineageAnswer is the life of a credential, or of a subject's credentials.
type LineageAnswer struct {
	Cluster     string       `json:"cluster"`
	Subject     string       `json:"subject,omitempty"`
	Credentials []Credential `json:"credentials"` // the newest use first
	// Truncated says that the subject has more credentials than the answer.
	Truncated bool `json:"truncated,omitempty"`
}

// Credential is one credential: where it came from and what it was used for.
type Credential struct {
	// Credential is "JTI=<id>", "X509SHA256=<fingerprint>" or "Secret=<namespace>/<name>"; ""
	// stands for all requests whose events do not tell.
	Credential string `json:"credential"`
	// Issue says how it was made, null when no recorded request shows it.
	Issue     *Issue          `json:"issue"`
	Explained []string        `json:"explained,omitempty"` // authenticators that take it
	Users     []string        `json:"users"`               // more than one only when something is wrong
	Requests  int64           `json:"requests"`            // 0 for a token that was issued and never used
	Forbidden int64           `json:"forbidden"`
	First     *time.Time      `json:"first,omitempty"` // use
	Last      *time.Time      `json:"last,omitempty"`  // use
	Uses      []CredentialUse `json:"uses"`            // where it was used from; 200 at most
	// More counts the places of use left out; -1 says that there are some.
	More           int64                     `json:"more,omitempty"`
	Contradictions []CredentialContradiction `json:"contradictions,omitempty"` // in its use
}

// CredentialContradiction is what contradicts itself in the use of a credential.
type CredentialContradiction struct {
	Name     string `json:"name"`
	Evidence string `json:"evidence"` // what shows it
}

// Issue is the request that made a credential. A token has the members from serviceAccount on, a certificate those from csr on.
type Issue struct {
	At      time.Time  `json:"at"`                // when it was made
	By      string     `json:"by"`                // who asked for it
	From    string     `json:"from,omitempty"`    // address
	AuditID string     `json:"auditID"`           // of the request that made it
	Expires *time.Time `json:"expires,omitempty"` // when the credential does

	ServiceAccount string `json:"serviceAccount,omitempty"` // namespace/name
	Pod            string `json:"pod,omitempty"`
	PodUID         string `json:"podUID,omitempty"`
	Node           string `json:"node,omitempty"`
	Secret         string `json:"secret,omitempty"`

	CSR           string   `json:"csr,omitempty"` // name of the signing request
	Signer        string   `json:"signer,omitempty"`
	CommonName    string   `json:"commonName,omitempty"`
	Organizations []string `json:"organizations,omitempty"` // groups
}

// CredentialUse is a place a credential was used from.
type CredentialUse struct {
	User      string    `json:"user,omitempty"`
	UserAgent string    `json:"userAgent"`
	From      string    `json:"from"` // address
	Pod       string    `json:"pod,omitempty"`
	Node      string    `json:"node,omitempty"`
	Requests  int64     `json:"requests"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

// LineageRequest asks for the life of one credential, or of those of a subject. 404 when nothing is known of it.
type LineageRequest struct {
	Asks[LineageAnswer] `question:"lineage"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"of this cluster (default: the only one); with --events its name (default \"evaluate\")"`
	Credential          string    `json:"credential" help:"JTI=ID of a token, X509SHA256=FINGERPRINT of a certificate, or Secret=NAMESPACE/NAME"`
	Subject             string    `json:"subject" help:"user name whose credentials are asked about"`
	From                time.Time `json:"from" help:"uses at or after this time, such as 2026-11-20T11:36:00Z"`
	To                  time.Time `json:"to" help:"uses before this time"`
	Limit               int       `json:"limit" default:"20" min:"1" max:"200" help:"most credentials of a subject"`
	Brief               bool      `json:"brief" help:"of a subject: count its own requests alone, and leave out where its credentials were used from"`
}

func (r LineageRequest) check() error {
	if (r.Credential == "") == (r.Subject == "") {
		return Bad("one of credential and subject is needed")
	}
	return before(r.From, r.To)
}

// Lineage answers with the life of credentials.
func (a *Service) Lineage(ctx context.Context, q LineageRequest) (out LineageAnswer, err error) {
	cluster, credential, subject, from, to, limit := q.Cluster, q.Credential, q.Subject, q.From, q.To, q.Limit
	st, err := a.stateOf(ctx, cluster, Latest)
	if err != nil {
		return out, err
	}
	out = LineageAnswer{Cluster: cluster, Subject: subject, Credentials: []Credential{}}
	if credential != "" {
		c := Credential{Credential: credential, Issue: issueOf(st, credential)}
		uses, err := a.Store.CredentialUses(ctx, cluster, []string{credential}, from, to, usesOfCredential+1)
		if err != nil {
			return out, err
		}
		a.follow(&c)
		c.used(uses[credential])
		if c.Requests == 0 && c.Issue == nil && a.Offline {
			return out, none("no event shows the credential %s", phrase.Shorten(credential))
		}
		if c.Requests == 0 && c.Issue == nil {
			return out, none("no stored request shows the credential %s in cluster %s", phrase.Shorten(credential), cluster)
		}
		out.Credentials = append(out.Credentials, c)
		return out, nil
	}
	found, err := a.Store.Credentials(ctx, cluster, subject, from, to, limit+1)
	if err != nil {
		return out, err
	}
	if len(found) > limit {
		found, out.Truncated = found[:limit], true
	}
	var uses queries.CredentialUses
	if !q.Brief {
		if uses, err = a.Store.CredentialUses(ctx, cluster, queries.Named(found), from, to, usesOfCredential+1); err != nil {
			return out, err
		}
	}
	for i := range found {
		f := &found[i]
		c := Credential{
			Credential: f.Credential, Issue: issueOf(st, f.Credential), Explained: f.Explained, Users: []string{subject},
			Requests: f.Requests, Forbidden: f.Forbidden, First: &f.First, Last: &f.Last, Uses: []CredentialUse{},
		}
		a.follow(&c)
		if f.Credential != "" && !q.Brief {
			c.used(uses[f.Credential])
		}
		out.Credentials = append(out.Credentials, c)
	}
	if namespace, name, ok := kubenames.SplitServiceAccount(subject); ok && st != nil {
		out.unused(st, namespace, name, from, to, limit)
	}
	if len(out.Credentials) > 0 {
		return out, nil
	}
	near, err := a.near(ctx, cluster, subject, nil)
	if err != nil {
		return out, err
	}
	meant := didYouMean(quoted(near))
	if a.Offline {
		return out, none("%s has no events, and no credential was issued to it%s", phrase.Shorten(subject), meant)
	}
	return out, none("nothing is stored of the credentials of %s in cluster %s%s", phrase.Shorten(subject), cluster, meant)
}

// used fills in what a credential was used for.
func (c *Credential) used(found []queries.CredentialUse) {
	if len(found) > usesOfCredential {
		found, c.More = found[:usesOfCredential], -1
	}
	c.Uses, c.Users, c.Requests, c.Forbidden = []CredentialUse{}, []string{}, 0, 0
	for i := range found {
		u := &found[i]
		c.Uses = append(c.Uses, CredentialUse{u.User, u.UserAgent, u.Source, u.Pod, u.Node, u.Requests, u.First, u.Last})
		c.Requests, c.Forbidden = c.Requests+u.Requests, c.Forbidden+u.Forbidden
		if !slices.Contains(c.Users, u.User) {
			c.Users = append(c.Users, u.User)
		}
		if c.First == nil || u.First.Before(*c.First) {
			c.First = &u.First
		}
		if c.Last == nil || u.Last.After(*c.Last) {
			c.Last = &u.Last
		}
	}
}

// follow adds what a credential's life shows that single requests do not, if it was followed.
func (a *Service) follow(c *Credential) {
	if a.Followed == nil {
		return
	}
	l, _ := a.Followed(c.Credential)
	for _, f := range l.Contradictions {
		c.Contradictions = append(c.Contradictions, CredentialContradiction{Name: f.Name, Evidence: f.Evidence})
	}
	if is := l.Issue; c.Issue == nil && is != nil {
		c.Issue = &Issue{At: is.At, By: is.By, From: is.SourceIP, AuditID: is.AuditID,
			ServiceAccount: is.Namespace + "/" + is.ServiceAccount}
	}
}

// unused adds the tokens that were issued to a service account and not used in the range.
func (l *LineageAnswer) unused(st *state.State, namespace, name string, from, to time.Time, limit int) {
	st.Credentials(namespace, name, func(c state.Credential) bool {
		switch {
		case len(l.Credentials) >= limit:
			l.Truncated = true
			return false
		case c.Issued.Before(from) || !to.IsZero() && !c.Issued.Before(to):
		case slices.ContainsFunc(l.Credentials, func(have Credential) bool { return have.Credential == c.ID }):
		default:
			l.Credentials = append(l.Credentials,
				Credential{Credential: c.ID, Issue: issueJSONOf(&c), Users: []string{}, Uses: []CredentialUse{}})
		}
		return true
	})
}

// issueOf returns how a credential was made, nil if nothing shows it.
func issueOf(st *state.State, credential string) *Issue {
	if st == nil || credential == "" {
		return nil
	}
	c, known := st.Credential(credential)
	if known != state.Present {
		return nil
	}
	return issueJSONOf(&c)
}

func issueJSONOf(c *state.Credential) *Issue {
	out := &Issue{
		At: c.Issued, By: c.By, From: c.ByAddr, AuditID: c.AuditID, Pod: c.Pod, PodUID: c.PodUID, Node: c.Node, Secret: c.Secret,
		CSR: c.CSR, Signer: c.Signer, CommonName: c.CommonName, Organizations: c.Organizations,
	}
	if c.ServiceAccount != "" {
		out.ServiceAccount = strings.TrimPrefix(c.Namespace+"/"+c.ServiceAccount, "/")
	}
	if !c.Expires.IsZero() {
		out.Expires = &c.Expires
	}
	return out
}

// About says what a credential was issued for.
func (is *Issue) About() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("service account", is.ServiceAccount)
	add("pod", is.Pod)
	add("node", is.Node)
	add("secret", is.Secret)
	add("signing request", is.CSR)
	add("signer", is.Signer)
	add("name", is.CommonName)
	add("groups", strings.Join(is.Organizations, ", "))
	return strings.Join(parts, ", ")
}

// IsCredential reports whether arg is a credential and not a user name: no name begins like one.
func IsCredential(arg string) bool {
	return strings.HasPrefix(arg, authn.PrefixJTI) || strings.HasPrefix(arg, authn.PrefixX509) || strings.HasPrefix(arg, authn.PrefixSecret)
}
