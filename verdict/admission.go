package verdict

// Admission is what is known of the admission phase of a request.
type Admission struct {
	// Recorded is "", "not-run", "admitted" or "rejected".
	Recorded string
	// Plugin that rejected, attributed from the message; "" when none or unknown.
	Plugin string
	// NamespaceLifecycle is the re-evaluated plugin's outcome:
	// "", "pass", "match", "drift", "ambiguous" or "indeterminate".
	NamespaceLifecycle string
}

// Values of Admission.Recorded.
const (
	AdmissionNotRun   = "not-run"  // the verb is not admitted, or the request never came that far
	AdmissionAdmitted = "admitted" // the request passed every plugin
	AdmissionRejected = "rejected" // a plugin refused it
)

// Values of Admission.NamespaceLifecycle, besides the empty string (not asked).
const (
	LifecyclePass          = "pass"
	LifecycleMatch         = "match"
	LifecycleDrift         = "drift"
	LifecycleAmbiguous     = "ambiguous"
	LifecycleIndeterminate = "indeterminate"
)
