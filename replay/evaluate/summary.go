package evaluate

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/verdict"
)

// Bounds of what a summary lists; all are counted.
const (
	maxMalformed = 100 // lines
	maxTrail     = 100 // contradictions over several events
)

// Verdicts counts requests by outcome.
type Verdicts struct {
	Match         int64 `json:"match"`
	Drift         int64 `json:"drift"`
	Ambiguous     int64 `json:"ambiguous"`
	Indeterminate int64 `json:"indeterminate"`
	NotJudged     int64 `json:"not_judged"`
}

// TrailContradiction is a contradiction over several events.
type TrailContradiction struct {
	Name     string    `json:"name"`
	Evidence string    `json:"evidence"`
	Subject  string    `json:"subject"` // credential, audit ID or address
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Count    int64     `json:"count"` // requests
}

// Malformed is a line that is not an event.
type Malformed struct {
	Input string `json:"input"`
	Line  int    `json:"line"` // from 1
	Error string `json:"error"`
}

// Summary is the outcome of an evaluation, as `retrial evaluate -o json` prints it.
type Summary struct {
	Events     int64 `json:"events"`     // distinct events read
	Requests   int64 `json:"requests"`   // distinct requests, one verdict each
	Duplicates int64 `json:"duplicates"` // events read again and dropped

	Verdicts Verdicts `json:"verdicts"`
	// Classes counts the verdicts that have a class.
	Classes map[string]int64 `json:"classes"`
	// Agreement is match ÷ (match + drift); null when neither happened.
	Agreement *float64 `json:"agreement"`

	// Identity counts contradictions on recorded identities, one a request and name.
	Identity map[string]int64 `json:"identity"`
	// Explained counts requests by the authenticators that can have produced the identity,
	// their names joined by "|"; "" is nobody authenticated, or nobody explains it.
	Explained map[string]int64 `json:"explained"`
	// Trail are contradictions no single event shows, by time, the first 100. The requests they
	// concern carry them too.
	Trail []TrailContradiction `json:"trail,omitempty"`
	// TrailForgotten is how many credentials and audit IDs were forgotten on the way: contradictions
	// on them may be missing.
	TrailForgotten int64 `json:"trail_forgotten,omitempty"`
	// Twins are requests of aggregated API servers that were joined with the event of the
	// kube-apiserver that passed them on.
	Twins int64 `json:"twins,omitempty"`
	// Admission counts requests by what admission did, Plugins the refusals by plugin,
	// AdmissionAnswers the answers by plugin and outcome.
	Admission        map[string]int64            `json:"admission"`
	Plugins          map[string]int64            `json:"plugins"`
	AdmissionAnswers map[string]map[string]int64 `json:"admission_answers"`
	// NamespaceLifecycle is in AdmissionAnswers too; it will be removed in the next release.
	NamespaceLifecycle map[string]int64 `json:"namespace_lifecycle"`

	// CacheLags say by how much apiservers decided behind the policy, where requests show it.
	CacheLags []replay.Lag `json:"cache_lags,omitempty"`

	// Born says that the log shows how the cluster was made: nothing was there before.
	Born                   bool  `json:"born,omitempty"`
	StateObjects           int64 `json:"state_objects"`            // read from state files
	PolicyWrites           int64 `json:"policy_writes"`            // read from the log
	PolicyWritesUnreadable int64 `json:"policy_writes_unreadable"` // whose content could not be read

	Malformed      int64       `json:"malformed"`
	MalformedLines []Malformed `json:"malformed_lines,omitempty"` // the first 100

	Seconds float64 `json:"seconds"`
	Engine  string  `json:"engine"`
	Config  string  `json:"config"`
}

func newSummary(eng *replay.Engine) *Summary {
	return &Summary{
		Classes: map[string]int64{}, Identity: map[string]int64{}, Explained: map[string]int64{}, Admission: map[string]int64{},
		Plugins: map[string]int64{}, AdmissionAnswers: map[string]map[string]int64{}, NamespaceLifecycle: map[string]int64{},
		Engine: eng.Version(), Config: eng.ConfigVersion(),
	}
}

// malformed counts malformed lines.
func (s *Summary) malformed(bad []Malformed) {
	s.Malformed += int64(len(bad))
	if room := maxMalformed - len(s.MalformedLines); room > 0 {
		s.MalformedLines = append(s.MalformedLines, bad[:min(room, len(bad))]...)
	}
}

// trail takes over what was found over several events.
func (s *Summary) trail(t *lineage.Trail, twins *lineage.Twins) {
	s.TrailForgotten, s.Twins = t.Forgotten()+twins.Forgotten(), twins.Joined()
	found := slices.Concat(t.Found(), twins.Found())
	slices.SortStableFunc(found, func(a, b lineage.Found) int { return a.First.Compare(b.First) })
	for _, f := range found {
		if len(s.Trail) == maxTrail {
			return
		}
		s.Trail = append(s.Trail, TrailContradiction{f.Name, f.Evidence, f.Subject, f.First, f.Last, f.Count})
	}
}

// addContradictions adds what several events show to the verdict on one of them.
func addContradictions(v *verdict.Verdict, found []authn.Contradiction) {
	for i := range found {
		if !slices.Contains(v.Identity, found[i].Name) {
			v.AddContradiction(found[i].Name, found[i].Evidence)
		}
	}
}

// count adds one verdict.
func (s *Summary) count(v *verdict.Verdict) {
	s.Requests++
	n := &s.Verdicts
	*[...]*int64{verdict.OutcomeNotJudged: &n.NotJudged, verdict.OutcomeMatch: &n.Match, verdict.OutcomeDrift: &n.Drift,
		verdict.OutcomeAmbiguous: &n.Ambiguous, verdict.OutcomeIndeterminate: &n.Indeterminate}[v.Outcome]++
	if v.Class != "" {
		s.Classes[v.Class]++
	}
	for _, f := range v.Identity {
		s.Identity[f]++
	}
	s.Explained[strings.Join(v.Explained, "|")]++
	if v.Admission.Recorded != "" {
		s.Admission[v.Admission.Recorded]++
	}
	if plugin := v.Admission.Plugin(); plugin != "" {
		s.Plugins[plugin]++
	}
	for i := range v.Admission.Answers {
		a := &v.Admission.Answers[i]
		if s.AdmissionAnswers[a.Plugin] == nil {
			s.AdmissionAnswers[a.Plugin] = map[string]int64{}
		}
		s.AdmissionAnswers[a.Plugin][a.Outcome]++
	}
	if outcome := v.Admission.NamespaceLifecycle(); outcome != "" {
		s.NamespaceLifecycle[outcome]++
	}
}

func (s *Summary) finish() {
	if judged := s.Verdicts.Match + s.Verdicts.Drift; judged > 0 {
		agreement := float64(s.Verdicts.Match) / float64(judged)
		s.Agreement = &agreement
	}
}

// JSONLines returns a Sink that writes each verdict as one line of JSON (verdict.Line) with
// one Write. The caller buffers and flushes w.
func JSONLines(w io.Writer) func(*event.Event, *verdict.Verdict) error {
	var buf []byte
	return func(e *event.Event, v *verdict.Verdict) (err error) {
		if buf, err = v.AppendLine(buf[:0], e); err != nil {
			return err
		}
		_, err = w.Write(buf)
		return err
	}
}
