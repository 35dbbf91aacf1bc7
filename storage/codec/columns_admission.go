package codec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// admissionAnswers are the columns of what admission plugins answered: parallel lists. On older rows the schema derives them from the
// earlier columns: see saidBefore.
var admissionAnswers = []string{ //nolint:gochecknoglobals // constant table
	"admission_plugins", "admission_names", "admission_outcomes", "admission_reasons", "admission_codes",
}

// admissionColumns returns the columns of what plugins answered.
func admissionColumns(b *Block, r *stored) []column {
	x, v := &b.at, &r.v
	first, list := admissionAnswers[0], admissionAnswers
	part := func(i int, c column) column {
		c.name, c.with = list[i], first
		return c
	}
	return []column{
		{
			name: first, data: &b.admissionPlugins, into: &r.admission.plugins, holds: "Admission.Answers",
			append: b.appendAdmission,
			build:  func() (err error) { v.Admission.Answers, err = r.admission.answers(); return err },
			same:   func(v, w *verdict.Verdict) bool { return slices.Equal(v.Admission.Answers, w.Admission.Answers) },
			place:  26, hash: func(h *hasher) {
				if saidBefore(&x.v.Admission, x.status.Code) {
					return
				}
				for i := range x.v.Admission.Answers {
					a := &x.v.Admission.Answers[i]
					for _, s := range [...]string{a.Plugin, a.Name, a.Outcome, a.Reason} {
						h.note('a', s)
					}
					h.number(uint64(a.Code))
				}
			},
		},
		part(1, column{data: &b.admissionNames, into: &r.admission.names, holds: "Admission.Answers.Name"}),
		part(2, column{data: &b.admissionOutcomes, into: &r.admission.outcomes, holds: "Admission.Answers.Outcome"}),
		part(3, column{data: &b.admissionReasons, into: &r.admission.reasons, holds: "Admission.Answers.Reason"}),
		part(4, column{data: &b.admissionCodes, into: &r.admission.codes, holds: "Admission.Answers.Code"}),
	}
}

// earlierAdmissionColumns returns the columns that earlier releases had instead. They are written for SQL that uses them, and never read.
func earlierAdmissionColumns(b *Block) []column {
	x := &b.at
	earlier := func(name string, data *native.LowCard, place int, get func(*verdict.Admission) string) column {
		c := plain(name, data, nil, func() { data.Append(get(&x.v.Admission)) })
		c.place, c.hash = place, func(h *hasher) { h.text(get(&x.v.Admission)) }
		return c
	}
	return []column{
		earlier("admission_plugin", &b.admissionPlugin, 11, (*verdict.Admission).Plugin),
		earlier("admission_namespace_lifecycle", &b.admissionNS, 12, (*verdict.Admission).NamespaceLifecycle),
	}
}

// saidBefore reports whether the columns of places 11 and 12 say everything about the answers to a request answered with code. For such
// rows the lists add nothing to the version, so that older rows keep theirs.
func saidBefore(adm *verdict.Admission, code int32) bool {
	list, refused := adm.Answers, adm.Plugin()
	lifecycle := verdict.AdmissionAnswer{Plugin: verdict.PluginNamespaceLifecycle, Outcome: adm.NamespaceLifecycle()}
	if refused == lifecycle.Plugin {
		lifecycle.Code = code
		lifecycle.Outcome = cmp.Or(lifecycle.Outcome, verdict.PluginRejected)
	}
	if lifecycle.Outcome != "" {
		if len(list) == 0 || list[0] != lifecycle {
			return false
		}
		list = list[1:]
	}
	if refused != "" && refused != lifecycle.Plugin {
		return len(list) == 1 && list[0] == verdict.AdmissionAnswer{Plugin: refused, Outcome: verdict.PluginRejected, Code: code}
	}
	return len(list) == 0
}

// appendAdmission adds the answers of the current row.
func (b *Block) appendAdmission() {
	for i := range b.at.v.Admission.Answers {
		a := &b.at.v.Admission.Answers[i]
		b.admissionPlugins.Items.Append(a.Plugin)
		b.admissionNames.Items.Append(a.Name)
		b.admissionOutcomes.Items.Append(a.Outcome)
		b.admissionReasons.Items.Append(a.Reason)
		b.admissionCodes.Items.Append(a.Code)
	}
	b.admissionPlugins.End()
	b.admissionNames.End()
	b.admissionOutcomes.End()
	b.admissionReasons.End()
	b.admissionCodes.End()
}

// storedAdmission are the answers as they are read.
type storedAdmission struct {
	plugins, names, outcomes, reasons []string
	codes                             []int32
}

func (s *storedAdmission) answers() ([]verdict.AdmissionAnswer, error) {
	n := len(s.plugins)
	if len(s.names) != n || len(s.outcomes) != n || len(s.reasons) != n || len(s.codes) != n {
		return nil, fmt.Errorf("admission plugins: %d with %d names, %d outcomes, %d reasons, %d codes", n, len(s.names), len(s.outcomes),
			len(s.reasons), len(s.codes))
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]verdict.AdmissionAnswer, n)
	for i := range out {
		out[i] = verdict.AdmissionAnswer{Plugin: s.plugins[i], Name: s.names[i], Outcome: s.outcomes[i], Reason: s.reasons[i],
			Code: s.codes[i]}
	}
	return out, nil
}
