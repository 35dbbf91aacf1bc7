package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/retrial-io/retrial/verdict"
)

// This file writes and reads the parts of a verdict that have a structure of their own: the chain, the checks behind the filter, the answer
// of a review. Each is a JSON text, so that SQL can look into it, and the two directions stand side by side.

// chainColumn holds the chain; nothing for none.
func chainColumn(b *Block, r *stored) column {
	x := &b.at
	return column{
		name: "chain", data: &b.chain, into: &r.chain, holds: "Chain",
		append: func() {
			x.chain = appendChain(x.chain, x.v.Chain, x.v.Grants)
			b.chain.AppendBytes(x.chain)
		},
		build: func() (err error) { r.v.Chain, err = decodeChain(r.chain, r.v.Grants); return err },
		same:  func(v, w *verdict.Verdict) bool { return slices.Equal(v.Chain, w.Chain) },
		place: 22, hash: func(h *hasher) {
			if len(x.chain) > 0 {
				h.buf[0] = 's'
				_, _ = h.d.Write(h.buf[:1])
				_, _ = h.d.Write(x.chain)
			}
		},
	}
}

// impliedColumn holds the checks behind the filter, with the two columns behind it.
func impliedColumn(b *Block, r *stored) column {
	x := &b.at
	return column{
		name: "implied", data: &b.implied, into: &r.implied, holds: "Implied",
		append: func() { b.appendImplied(x.row, x.v.Implied) },
		build: func() error {
			if len(r.implied) != len(r.impliedGrants) {
				return fmt.Errorf("%d implied checks have grants of %d", len(r.implied), len(r.impliedGrants))
			}
			for i, text := range r.implied {
				c, err := decodeImplied(text, r.impliedGrants[i])
				if err != nil {
					return err
				}
				r.v.Implied = append(r.v.Implied, c)
			}
			return nil
		},
		same:  func(v, w *verdict.Verdict) bool { return slices.EqualFunc(v.Implied, w.Implied, sameImplied) },
		place: 23, hash: func(h *hasher) {
			if len(x.implied) > 0 {
				_, _ = h.d.Write(x.implied)
			}
		},
	}
}

// reviewColumn holds the answer of a review; nothing for none.
func reviewColumn(b *Block, r *stored) column {
	x := &b.at
	return column{
		name: "review", data: &b.review, into: &r.review, holds: "Review",
		append: func() {
			var err error
			if x.review, err = encodeReview(x.v.Review); err != nil {
				b.fail(err)
			}
			b.review.Append(x.review)
		},
		build: func() (err error) { r.v.Review, err = decodeReview(r.review); return err },
		same:  func(v, w *verdict.Verdict) bool { return sameReview(v.Review, w.Review) },
		place: 24, hash: func(h *hasher) {
			if x.review != "" {
				h.note('r', x.review)
			}
		},
	}
}

// appendImplied adds the checks behind the filter. Each is an access of whom it asks about,
// under the key it would have as a request of its own; one that cannot be asked has none.
func (b *Block) appendImplied(r *verdict.Row, checks []verdict.Implied) {
	x := &b.at
	for i := range checks {
		c := &checks[i]
		was := r.Counted[min(len(r.Counted), 1):]
		if r.Sign < 0 && i < len(was) {
			was = was[i : i+1]
		}
		asker, by := x.who, ""
		if c.ByRequestor() {
			if asker.groups = GroupSet(r.Event.User.Groups); c.Attributes.Verb != "" {
				asker = b.whoIs(r, &r.Event.User, false, &c.Attributes, was)
			}
			by = strconv.FormatUint(asker.groups, 10)
		}
		as := counted{name: FoldName(c.Attributes.Name), path: FoldPath(c.Attributes.Path)}
		if c.Attributes.Verb != "" {
			as = b.count(r, asker, &c.Attributes, was)
		}
		text, err := encodeImplied(c, as.name, as.path, by)
		if err != nil {
			b.fail(err)
		}
		b.implied.Items.Append(text)
		b.impliedAccess.Items.Append(as.key)
		x.implied = appendNote(x.implied, 'i', text)
		for j := range c.Grants {
			text := b.grant(&c.Grants[j])
			b.impliedGrants.Items.Items.Append(text)
			x.implied = appendNote(x.implied, 'g', text)
		}
		b.impliedGrants.Items.End()
	}
	b.implied.End()
	b.impliedAccess.End()
	b.impliedGrants.End()
}

// appendChain writes a chain as the chain column holds it; nothing for none. A reason that is a grant's is written as the grant's index: it
// is in the row already, and a cluster's chains then have few distinct texts.
func appendChain(b []byte, chain []verdict.ChainStep, grants []verdict.Grant) []byte {
	if len(chain) == 0 {
		return b
	}
	for i := range chain {
		c := &chain[i]
		b = append(b, "[,"[min(i, 1)], '[')
		b = appendText(b, c.Authorizer)
		b = append(b, ',')
		b = appendText(b, c.Answer)
		if c.Reason != "" {
			b = append(b, ',')
			if g := slices.IndexFunc(grants, func(g verdict.Grant) bool { return g.Reason == c.Reason }); g >= 0 {
				b = strconv.AppendInt(b, int64(g), 10)
			} else {
				b = appendText(b, c.Reason)
			}
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// decodeChain reads what appendChain wrote.
func decodeChain(text string, grants []verdict.Grant) ([]verdict.ChainStep, error) {
	if text == "" {
		return nil, nil
	}
	var steps [][]json.RawMessage
	if err := json.Unmarshal([]byte(text), &steps); err != nil {
		return nil, fmt.Errorf("decode chain %q: %w", text, err)
	}
	out := make([]verdict.ChainStep, len(steps))
	for i, s := range steps {
		if len(s) < 2 || len(s) > 3 {
			return nil, fmt.Errorf("decode chain %q: step %d has %d members", text, i+1, len(s))
		}
		to := []any{&out[i].Authorizer, &out[i].Answer, &out[i].Reason}
		place := -1
		if len(s) == 3 && s[2][0] != '"' {
			to[2] = &place
		}
		for j := range s {
			if err := json.Unmarshal(s[j], to[j]); err != nil {
				return nil, fmt.Errorf("decode chain %q: step %d: %w", text, i+1, err)
			}
		}
		if place >= len(grants) {
			return nil, fmt.Errorf("decode chain %q: step %d names grant %d of %d", text, i+1, place+1, len(grants))
		}
		if place >= 0 {
			out[i].Reason = grants[place].Reason
		}
	}
	return out, nil
}

// encodeImplied writes a check as an element of the implied column: by is the group set of the requestor when it is asked about him. The
// views of the rollups read members by place (see schema), so that new ones go to the end.
func encodeImplied(c *verdict.Implied, name, path, by string) (string, error) {
	a := &c.Attributes
	b := append(make([]byte, 0, 256), '[')
	for i, s := range [...]string{c.Check, c.Replayed.String(), c.Recorded.String()} {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	b = append(b, ',', '0'+Bit(c.Covered), ',')
	b = append(appendText(b, a.Verb), ',', '0'+Bit(a.ResourceRequest))
	for _, s := range [...]string{a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Namespace, a.Name, a.Path, a.LabelSelector,
		a.FieldSelector, name, path} {
		b = appendText(append(b, ','), s)
	}
	b = append(b, ",["...)
	for i, s := range c.Missing {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	b = appendText(append(b, "],"...), c.Perhaps)
	b = appendText(append(b, ','), by)
	if len(c.Wanted) > 0 {
		rules, err := json.Marshal(c.Wanted)
		if err != nil {
			return "", fmt.Errorf("encode wanted rules: %w", err)
		}
		b = append(append(b, ','), rules...)
	}
	return string(append(b, ']')), nil
}

// decodeImplied reads what encodeImplied wrote.
func decodeImplied(text string, grants []string) (verdict.Implied, error) {
	var c verdict.Implied
	var replayed, recorded, name, path, by string
	var covered, resource uint8
	a := &c.Attributes
	to := []any{&c.Check, &replayed, &recorded, &covered, &a.Verb, &resource, &a.APIGroup, &a.APIVersion, &a.Resource, &a.Subresource,
		&a.Namespace, &a.Name, &a.Path, &a.LabelSelector, &a.FieldSelector, &name, &path, &c.Missing, &c.Perhaps, &by, &c.Wanted}
	if _, err := decodeMembers("implied check", text, to); err != nil {
		return c, err
	}
	c.Replayed, c.Recorded, c.Covered, a.ResourceRequest = verdict.DecisionOf(replayed), verdict.DecisionOf(recorded), covered != 0,
		resource != 0
	c.Missing = OrNil(c.Missing)
	var err error
	c.Grants, err = decodeGrants(grants)
	return c, err
}

// storedReview is a review as the review column holds it.
type storedReview struct {
	Kind       string              `json:"kind"`
	User       string              `json:"user,omitempty"`
	Groups     []string            `json:"groups,omitempty"`
	Attributes *verdict.Attributes `json:"attributes,omitempty"`
	Recorded   string              `json:"recorded"`
	Replayed   string              `json:"replayed"`
	Reason     string              `json:"reason,omitempty"`
	Outcome    string              `json:"outcome"`
	Cause      string              `json:"cause,omitempty"`
}

// encodeReview writes a review; nothing for none.
func encodeReview(v *verdict.ReviewCheck) (string, error) {
	if v == nil {
		return "", nil
	}
	s := storedReview{Kind: v.Kind, User: v.User, Groups: v.Groups, Recorded: v.Recorded.String(), Replayed: v.Replayed.String(),
		Reason: v.Reason, Outcome: v.Outcome.String(), Cause: v.Cause}
	if v.Attributes != (verdict.Attributes{}) {
		s.Attributes = &v.Attributes
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode review: %w", err)
	}
	return string(text), nil
}

// decodeReview reads what encodeReview wrote.
func decodeReview(text string) (*verdict.ReviewCheck, error) {
	if text == "" {
		return nil, nil
	}
	var s storedReview
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("decode review %q: %w", text, err)
	}
	v := &verdict.ReviewCheck{Kind: s.Kind, User: s.User, Groups: OrNil(s.Groups), Recorded: verdict.DecisionOf(s.Recorded),
		Replayed: verdict.DecisionOf(s.Replayed),
		Reason:   s.Reason, Outcome: verdict.OutcomeOf(s.Outcome), Cause: s.Cause}
	if s.Attributes != nil {
		v.Attributes = *s.Attributes
	}
	return v, nil
}

// appendText appends a JSON string. Text without anything to escape, which is nearly all, is copied.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, err := json.Marshal(s)
			if err != nil { // a string always encodes
				text = []byte(`""`)
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
