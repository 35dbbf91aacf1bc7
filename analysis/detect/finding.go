package detect

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Finding is what a rule found in one window. Findings with the same ID are the same finding.
type Finding struct {
	ID       string   `json:"id"` // 32 hexadecimal digits, of cluster, rule, group and window
	Rule     string   `json:"rule"`
	Title    string   `json:"title"`
	Severity string   `json:"severity"`
	Attack   []string `json:"attack"`
	Cluster  string   `json:"cluster"`
	// requestor of the earliest request, or whom the rule names; chosen by clients, like all text below
	Subject string `json:"subject"`
	// Window is the start of the stretch of time the finding is about: of a rule's fold, or of the
	// hour in which a key was first seen.
	Window time.Time `json:"window"`
	// First and Last are the times of the earliest and latest request counted.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int64     `json:"count"` // requests
	// Keys is how many first-seen keys of a day it tells of together, when there are more than are told one by
	// one; absent from all other findings.
	Keys     int64      `json:"keys,omitempty"`
	Text     string     `json:"text"` // one line: the earliest request, and the number of others
	Evidence []Evidence `json:"evidence"`
}

// Evidence is one request of a finding: enough to find it again, and nothing of its bodies or
// query.
type Evidence struct {
	AuditID string    `json:"auditID"`
	Request string    `json:"request"` // request key, 32 hexadecimal digits
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`

	subject, user string
}

// maxEvidence is how many requests a finding lists: the earliest ones.
const maxEvidence = 5

// identify hashes what identifies a finding. Parts are length-prefixed: clients choose some of
// them.
func identify(cluster, rule, group string, window int64) string {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{cluster, rule, group} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	binary.BigEndian.PutUint64(n[:], uint64(window))
	h.Write(n[:])
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// evidence describes the input's request: whom it is about (who made it if that is empty) and what
// else the rule says about it. Strings are copies, since those of an event alias the buffer it was
// read into.
func (in *input) evidence(about, says string) Evidence {
	e, a := in.event, in.attrs
	var b strings.Builder
	subject := e.User.Username
	b.WriteString(named(subject))
	if e.ImpersonatedUser != nil {
		b.WriteString(" (acting as " + named(e.ImpersonatedUser.Username) + ")")
	}
	b.WriteString(" " + named(e.Verb) + " ")
	if a.ResourceRequest {
		b.WriteString(a.Resource)
		if a.Subresource != "" {
			b.WriteString("/" + a.Subresource)
		}
		if a.APIGroup != "" {
			b.WriteString("." + a.APIGroup)
		}
		if a.Namespace != "" || a.Name != "" {
			b.WriteString(" " + a.Namespace + "/" + a.Name)
		}
	} else {
		p, _, _ := strings.Cut(e.RequestURI, "?")
		b.WriteString(p)
	}
	if c := e.Code(); c != 0 {
		b.WriteString(": " + strconv.Itoa(int(c)))
	}
	if says != "" {
		b.WriteString("; " + says)
	}
	if about != "" {
		subject = about
	}
	return Evidence{
		AuditID: strings.Clone(e.AuditID), Request: in.requestKey(), Time: e.RequestReceivedTimestamp,
		Text: short(b.String()), subject: strings.Clone(short(subject)), user: strings.Clone(e.User.Username),
	}
}

// maxText bounds client-chosen text in findings.
const maxText = 500

// short truncates a text that is too long.
func short(s string) string { return cutTo(s, maxText) }

// cutTo truncates a text to at most n bytes, between characters.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func plural(n int64) string { return strconv.FormatInt(n, 10) + " requests" }

func named(s string) string {
	if s == "" {
		return "(nobody)"
	}
	return s
}

func compareEvidence(a, b Evidence) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Request, b.Request), cmp.Compare(a.Text, b.Text))
}

// order sorts findings by time, rule and identifier.
func order(f []Finding) {
	slices.SortFunc(f, func(a, b Finding) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID))
	})
}
