package codec

import (
	"fmt"
	"slices"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// Why a column does not tell verdicts, or versions of a row, apart.
const (
	ofEvent = "the event alone says it"
	noNews  = "the same verdict under a newer one is the same row"
	ofCause = "it changes with `policy_revision`, `engine_version` or `config_version` alone"
	// tooLate says why a column that was not hashed at first still is not: rows stored with something in it could not be taken back.
	tooLate = "; rows that are stored have versions without it"
)

// verdictColumns returns the columns of what was decided, all empty on rows without a verdict.
func verdictColumns(b *Block, r *stored) []column {
	x, v := &b.at, &r.v
	return slices.Concat([]column{
		outcomeColumn(b, r),
		word(b, "class", &b.class, &v.Class, "Class", 5, func(v *verdict.Verdict) string { return v.Class }),
		word(b, "cause", &b.cause, &v.Cause, "Cause", 6, func(v *verdict.Verdict) string { return v.Cause }),
		decision(b, "recorded", &b.recorded, &r.recorded, &v.Recorded, "Recorded",
			func(v *verdict.Verdict) verdict.Decision { return v.Recorded }).
			uncomparedFor(ofEvent),
		word(b, "recorded_reason", &b.recordedReason, &v.RecordedReason, "RecordedReason", 0,
			func(v *verdict.Verdict) string { return v.RecordedReason }).
			apart(ofEvent),
		decision(b, "replayed", &b.replayed, &r.replayed, &v.Replayed, "Replayed",
			func(v *verdict.Verdict) verdict.Decision { return v.Replayed }),
		word(b, "authorizer", &b.authorizer, &v.Authorizer, "Authorizer", 7, func(v *verdict.Verdict) string { return v.Authorizer }),
		{
			name: "grants", data: &b.granted, into: &r.grants, holds: "Grants",
			append: func() { b.appendGrants(&b.granted, x.v.Grants) },
			build:  func() (err error) { v.Grants, err = decodeGrants(r.grants); return err },
			same:   func(v, w *verdict.Verdict) bool { return sameGrants(v.Grants, w.Grants) },
			place:  13,
			hash: func(h *hasher) {
				for _, g := range x.grants {
					h.text(g)
				}
			},
		},
		words(b, "errors", &b.errs, &v.Errors, "Errors", 14, func(v *verdict.Verdict) []string { return v.Errors }),
		words(b, "missing", &b.missing, &v.Missing, "Missing", 15, func(v *verdict.Verdict) []string { return v.Missing }),

		word(b, "attr_verb", &b.attrVerb, &v.Attributes.Verb, "Attributes.Verb", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Verb }).apart(ofEvent),
		{
			name: "attr_is_resource", data: &b.attrIsResource, into: &r.isResource, holds: "Attributes.ResourceRequest",
			uncompared: ofEvent, unhashed: ofEvent, append: func() { b.attrIsResource.Append(Bit(x.v.Attributes.ResourceRequest)) },
			build: func() error { v.Attributes.ResourceRequest = r.isResource != 0; return nil },
		},
		word(b, "attr_api_group", &b.attrGroup, &v.Attributes.APIGroup, "Attributes.APIGroup", 0,
			func(v *verdict.Verdict) string { return v.Attributes.APIGroup }).apart(ofEvent),
		word(b, "attr_api_version", &b.attrVersion, &v.Attributes.APIVersion, "Attributes.APIVersion", 0,
			func(v *verdict.Verdict) string { return v.Attributes.APIVersion }).apart(ofEvent),
		word(b, "attr_resource", &b.attrResource, &v.Attributes.Resource, "Attributes.Resource", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Resource }).apart(ofEvent),
		word(b, "attr_subresource", &b.attrSub, &v.Attributes.Subresource, "Attributes.Subresource", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Subresource }).apart(ofEvent),
		word(b, "attr_namespace", &b.attrNamespace, &v.Attributes.Namespace, "Attributes.Namespace", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Namespace }).apart(ofEvent),
		word(b, "attr_name", &b.attrName, &v.Attributes.Name, "Attributes.Name", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Name }).apart(ofEvent),
		free(b, "attr_path", &b.attrPath, &v.Attributes.Path, "Attributes.Path", 0,
			func(v *verdict.Verdict) string { return v.Attributes.Path }).apart(ofEvent),
		free(b, "attr_label_selector", &b.attrLabels, &v.Attributes.LabelSelector, "Attributes.LabelSelector", 0,
			func(v *verdict.Verdict) string { return v.Attributes.LabelSelector }).apart(ofEvent),
		free(b, "attr_field_selector", &b.attrFields, &v.Attributes.FieldSelector, "Attributes.FieldSelector", 0,
			func(v *verdict.Verdict) string { return v.Attributes.FieldSelector }).apart(ofEvent),

		impersonationColumn(b, r),
		impersonated(r, word(b, "impersonation_mode", &b.impMode, &r.impCheck.Mode, "Impersonation.Mode", 0,
			func(v *verdict.Verdict) string { return impersonation(v).Mode })).
			unhashedFor(ofEvent + tooLate),
		impersonated(r, column{
			name: "impersonation_grants", data: &b.impGrants, into: &r.impGrants, holds: "Impersonation.Grants", with: "grants",
			append: func() { b.appendGrants(&b.impGrants, impersonation(x.v).Grants) },
			build:  func() (err error) { r.impCheck.Grants, err = decodeGrants(r.impGrants); return err },
			same:   func(v, w *verdict.Verdict) bool { return sameGrants(impersonation(v).Grants, impersonation(w).Grants) },
		}),
		impersonated(r, words(b, "impersonation_missing", &b.impMissing, &r.impCheck.Missing, "Impersonation.Missing", 0,
			func(v *verdict.Verdict) []string { return impersonation(v).Missing })).
			unhashedFor(ofCause + tooLate),

		words(b, "identity", &b.identity, &v.Identity, "Identity", 16, func(v *verdict.Verdict) []string { return v.Identity }),
		word(b, "admission", &b.admission, &v.Admission.Recorded, "Admission.Recorded", 10,
			func(v *verdict.Verdict) string { return v.Admission.Recorded }),
	}, earlierAdmissionColumns(b), []column{
		{
			name: "policy_revision", data: &b.policyRevision, into: &v.Revision, holds: "Revision", uncompared: noNews,
			append: func() { b.policyRevision.Append(x.v.Revision) },
			place:  3, hash: func(h *hasher) { h.number(x.v.Revision) },
		},
		word(b, "engine_version", &b.engine, &v.Engine, "Engine", 8,
			func(v *verdict.Verdict) string { return v.Engine }).uncomparedFor(noNews),
		word(b, "config_version", &b.cf, &v.Config, "Config", 9, func(v *verdict.Verdict) string { return v.Config }).uncomparedFor(noNews),
	})
}

// outcomeColumn returns the column of the outcome, which is empty on rows without a verdict.
func outcomeColumn(b *Block, r *stored) column {
	x := &b.at
	return column{
		name: "outcome", data: &b.outcome, into: &r.outcome, holds: "Outcome",
		append: func() {
			if x.judged {
				b.outcome.Append(x.v.Outcome.String())
			} else {
				b.outcome.Append("")
			}
		},
		build: func() error { r.v.Outcome = verdict.OutcomeOf(r.outcome); return nil },
		same:  func(v, w *verdict.Verdict) bool { return v.Outcome == w.Outcome },
		place: 4, hash: func(h *hasher) {
			h.number(uint64(x.v.Outcome)<<16 | uint64(x.v.Recorded)<<8 | uint64(x.v.Replayed))
		},
	}
}

// decision returns the column of a decision of the verdict, which the hash of outcome covers.
func decision(b *Block, name string, data *native.LowCard, into *string, part *verdict.Decision, holds string,
	get func(*verdict.Verdict) verdict.Decision) column {
	x := &b.at
	return column{
		name: name, data: data, into: into, holds: holds, with: "outcome",
		append: func() {
			if x.judged {
				data.Append(get(x.v).String())
			} else {
				data.Append("")
			}
		},
		build: func() error { *part = verdict.DecisionOf(*into); return nil },
		same:  func(v, w *verdict.Verdict) bool { return get(v) == get(w) },
	}
}

// impersonationColumn returns the column of the second check, empty where none was needed.
func impersonationColumn(b *Block, r *stored) column {
	x := &b.at
	return column{
		name: "impersonation", data: &b.impReplayed, into: &r.imp, holds: "Impersonation.Replayed",
		append: func() {
			if i := x.v.Impersonation; i != nil {
				b.impReplayed.Append(i.Replayed.String())
			} else {
				b.impReplayed.Append("")
			}
		},
		build: func() error {
			if r.imp != "" {
				r.impCheck.Replayed, r.v.Impersonation = verdict.DecisionOf(r.imp), &r.impCheck
			}
			return nil
		},
		same: func(v, w *verdict.Verdict) bool {
			return (v.Impersonation == nil) == (w.Impersonation == nil) && impersonation(v).Replayed == impersonation(w).Replayed
		},
		place: 17, hash: func(h *hasher) {
			if i := x.v.Impersonation; i != nil {
				h.number(uint64(i.Replayed) + 1)
			}
		},
	}
}

// noImpersonation stands for the check of requests that need none.
var noImpersonation verdict.ImpersonationCheck //nolint:gochecknoglobals // an empty value, never written

func impersonation(v *verdict.Verdict) *verdict.ImpersonationCheck {
	if v.Impersonation == nil {
		return &noImpersonation
	}
	return v.Impersonation
}

// countedColumns returns the columns of what rollups count of a row, and of the detection rules that select it.
func countedColumns(b *Block, r *stored) []column {
	x := &b.at
	hits := plain("hits", &b.hits, &r.hits, func() {
		for _, m := range x.row.Marks {
			b.hits.Items.Append(m.Name)
		}
		b.hits.End()
	})
	hits.place, hits.hash = 18, func(h *hasher) {
		for _, m := range x.row.Marks {
			h.text(m.Name)
			h.number(storedKey(m.Key, x.e.AuditID))
		}
	}
	return []column{
		plain("access", &b.access, &r.access, func() { b.access.Append(x.access.key) }),
		plain("access_name", &b.accessName, nil, func() { b.accessName.Append(x.access.name) }),
		plain("access_path", &b.accessPath, nil, func() { b.accessPath.Append(x.access.path) }),
		plain("group_set", &b.groupSet, nil, func() { b.groupSet.Append(x.who.groups) }),
		hits,
		plain("hit_keys", &b.hitKeys, &r.hitKeys, func() {
			for _, m := range x.row.Marks {
				b.hitKeys.Items.Append(storedKey(m.Key, x.e.AuditID))
			}
			b.hitKeys.End()
		}).hashedWith("hits"),
	}
}

// moreColumns returns the columns of later releases, empty on older rows.
func moreColumns(b *Block, r *stored) []column {
	x, v := &b.at, &r.v
	return []column{
		plain("batch", &b.batch, nil, func() { b.batch.Append(b.Batch) }),
		manyTexts(b, "evidence", &b.evidence, &v.Evidence, "Evidence", 19, func(v *verdict.Verdict) []string { return v.Evidence },
			func() { b.evidence.Append(x.v.Evidence) }).
			noted('e', func() []string { return x.v.Evidence }),
		words(b, "explained", &b.explained, &v.Explained, "Explained", 20, func(v *verdict.Verdict) []string { return v.Explained }).
			noted('x', func() []string { return x.v.Explained }),
		later(b, "credential", &v.Credential, "Credential", 21, 'c', func(v *verdict.Verdict) string { return v.Credential }),
		chainColumn(b, r),
		impliedColumn(b, r),
		plain("implied_access", &b.impliedAccess, &r.impliedAccess, nil),
		{name: "implied_grants", data: &b.impliedGrants, into: &r.impliedGrants, holds: "Implied.Grants", with: "implied"},
		reviewColumn(b, r),
		words(b, "binds", &b.binds, &v.Binds, "Binds", 25, func(v *verdict.Verdict) []string { return v.Binds }).
			noted('b', func() []string { return x.v.Binds }),
	}
}

// impersonated makes a column's build wait for the check it is a part of.
func impersonated(r *stored, c column) column {
	build := c.build
	c.build = func() error {
		if r.imp == "" || build == nil {
			return nil
		}
		if err := build(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return nil
	}
	return c
}
