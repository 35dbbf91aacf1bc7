package verdict

// Admission is what is known of the admission phase of a request.
type Admission struct {
	// Recorded is "", "not-run", "admitted" or "rejected".
	Recorded string
	// Answers are those of the plugins that are known: the one that refused the request, and each
	// that was evaluated again. They may be shared with other verdicts and must not be modified.
	Answers []AdmissionAnswer
}

// AdmissionAnswer is what one admission plugin did with a request.
type AdmissionAnswer struct {
	// Plugin is the plugin's name, as --enable-admission-plugins has it.
	Plugin string `json:"plugin"`
	// Name is the policy, webhook or quota that decided, "" if there is none or it is not known.
	Name string `json:"name,omitempty"`
	// Outcome is how the plugin's answer compares with the record: rejected (not evaluated again), pass,
	// match, drift, ambiguous or indeterminate.
	Outcome string `json:"outcome"`
	// Reason is what the plugin said when it refused; if it should have refused and did not, what
	// it would have said; if its answer is not known, what is missing.
	Reason string `json:"reason,omitempty"`
	// Code is the response's if the plugin refused the request, else 0.
	Code int32 `json:"code,omitempty"`
}

// Values of Admission.Recorded.
const (
	AdmissionNotRun   = "not-run"  // the verb is not admitted, or the request never reached admission
	AdmissionAdmitted = "admitted" // the request passed every plugin
	AdmissionRejected = "rejected" // a plugin refused it
)

// Values of AdmissionAnswer.Outcome.
const (
	PluginRejected      = "rejected"      // it refused; the plugin is not evaluated again
	PluginPass          = "pass"          // it lets the request pass, and did
	PluginMatch         = "match"         // it refuses the request, and did
	PluginDrift         = "drift"         // it did something else
	PluginAmbiguous     = "ambiguous"     // what it reads changed meanwhile
	PluginIndeterminate = "indeterminate" // what it reads is not known
)

// PluginNamespaceLifecycle is the plugin that had a field of its own before [Admission.Answers].
const PluginNamespaceLifecycle = "NamespaceLifecycle"

// Refused reports whether the record shows that the plugin refused the request.
func (a *AdmissionAnswer) Refused() bool {
	return a.Code != 0 || a.Outcome == PluginRejected || a.Outcome == PluginMatch
}

// Refusal returns the answer of the plugin that refused the request, nil if none did.
func (a *Admission) Refusal() *AdmissionAnswer { return a.find((*AdmissionAnswer).Refused) }

// Of returns the answer of a plugin, nil if there is none.
func (a *Admission) Of(plugin string) *AdmissionAnswer {
	return a.find(func(x *AdmissionAnswer) bool { return x.Plugin == plugin })
}

func (a *Admission) find(is func(*AdmissionAnswer) bool) *AdmissionAnswer {
	for i := range a.Answers {
		if is(&a.Answers[i]) {
			return &a.Answers[i]
		}
	}
	return nil
}

// Plugin returns the name of the plugin that refused the request, "" if none did.
func (a *Admission) Plugin() string {
	if r := a.Refusal(); r != nil {
		return r.Plugin
	}
	return ""
}

// NamespaceLifecycle returns the outcome of that plugin, "" if it was not evaluated.
func (a *Admission) NamespaceLifecycle() string {
	if x := a.Of(PluginNamespaceLifecycle); x != nil && x.Outcome != PluginRejected {
		return x.Outcome
	}
	return ""
}
