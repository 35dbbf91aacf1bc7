package query

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/internal/safe"
)

// SuggestTexts are the changes of named subjects as text, to be read, kept and applied.
type SuggestTexts struct {
	// Apply is YAML: the objects to write and, as comments, what it rests on and what to remove then.
	Apply string `json:"apply"`
	// Remove are the commands that remove what the objects replace, a line each.
	Remove string `json:"remove"`
	// Rollback is YAML: the objects as they were and, as comments, which new ones to delete then.
	Rollback string `json:"rollback"`
}

// texts writes them.
func (a *SuggestAnswer) texts() (*SuggestTexts, error) {
	var apply, remove, rollback strings.Builder
	if err := a.WriteYAML(&apply, false); err != nil {
		return nil, err
	}
	for i := range a.Plan.Remove {
		command, err := a.Plan.Remove[i].Command()
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(&remove, safe.Text(command))
	}
	for _, s := range a.Suggestions {
		manifest.Comment(&rollback, "the way back from the change for %s: %s", s.What, s.Subject)
	}
	if err := manifest.Objects(&rollback, a.Plan.Rollback); err != nil {
		return nil, err
	}
	if err := manifest.Deletions(&rollback, a.Plan.Apply, a.Plan.Rollback); err != nil {
		return nil, err
	}
	return &SuggestTexts{Apply: apply.String(), Remove: remove.String(), Rollback: rollback.String()}, nil
}

// Verdict says in a few words whether the proofs hold.
func (a *SuggestAnswer) Verdict() string {
	failed := 0
	for _, one := range a.Suggestions {
		if !one.Proof.Holds {
			failed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d proofs do not hold", failed)
	case !a.Plan.Holds:
		return "every proof holds alone, not all of them together"
	}
	return "every proof holds, also with all suggestions in force together"
}

// WriteYAML writes what to apply and, as comments, why and what to remove; or the objects of the final state.
func (a *SuggestAnswer) WriteYAML(w io.Writer, final bool) error {
	manifest.Comment(w, "window: %s", RecordingText(&a.Window))
	for _, g := range a.Window.Gaps {
		manifest.Comment(w, "window gap: %s", g)
	}
	manifest.Comment(w, "%s", a.Verdict())
	manifest.Comment(w, "")
	if final {
		return manifest.Objects(w, a.Plan.Final)
	}
	for _, s := range a.Suggestions {
		manifest.Comment(w, "%s: %s", s.What, s.Subject)
		manifest.Comment(w, "%d requests, %.1f %% of them judged", s.Window.Requests, 100*s.Window.Coverage)
		manifest.Comment(w, "excess: %d, after the change %d, by groups %d", s.Excess.Before, s.Excess.After, s.Excess.Kept)
		manifest.Comment(w, "proof: %s; %d requests replayed, %d refused; %d refusals on record, %d newly allowed", ProofText(s),
			s.Proof.Requests, s.Proof.Refused, s.Proof.Refusals, s.Proof.NewlyAllowed)
		if !s.Maturity.Learned {
			manifest.Comment(w, "still learning: %s", s.Maturity.Why)
		}
		for _, k := range s.Keeps {
			if len(k.Undoes) > 0 {
				manifest.Comment(w, "kept: %s", KeptText(&k))
			}
		}
		for _, added := range s.KeptTexts() {
			manifest.Comment(w, "kept although never used: %s", added)
		}
		for _, g := range s.Gaps {
			manifest.Comment(w, "gap: %s", g)
		}
		if !s.Changes() {
			manifest.Comment(w, "nothing to change")
		}
		fmt.Fprintln(w, "#")
	}
	if err := leastpriv.WriteNoted(w, a.Plan.Apply, leastpriv.Notes(a.Plan.Why)); err != nil {
		return err
	}
	if len(a.Plan.Remove) == 0 {
		return nil
	}
	manifest.Comment(w, "When the above is applied, remove what it replaces (the way back: -o json, rollback):")
	for i := range a.Plan.Remove {
		command, err := a.Plan.Remove[i].Command()
		if err != nil {
			return err
		}
		manifest.Comment(w, "  %s", command)
	}
	return nil
}

// RecordingText says how long was recorded, and how much of it was judged.
func RecordingText(r *Recording) string {
	return fmt.Sprintf("%s to %s (%s); %d requests, %.1f %% of them judged", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
		r.To.Sub(r.From).Round(time.Second), r.Requests, 100*r.Coverage)
}

// ProofText says whether the proof of a suggestion holds.
func ProofText(s *Suggestion) string {
	switch p := &s.Proof; {
	case !p.Holds:
		return fmt.Sprintf("fails: %d refused, %d newly allowed", p.Refused, p.NewlyAllowed)
	case !s.Seen:
		return "holds: never seen" + pointless(s)
	}
	return "holds" + pointless(s)
}

// pointless names the first group that still gives some of what a change takes away.
func pointless(s *Suggestion) string {
	for _, k := range s.Keeps {
		if len(k.Undoes) > 0 {
			return "; group " + k.Group + " undoes part of it"
		}
	}
	return ""
}

// KeptText says what a group goes on giving.
func KeptText(k *KeptBinding) string {
	text := fmt.Sprintf("%s of %s to group %s: %d requests rely on it, excess %d", k.Binding, k.Role, k.Group, k.Relied, k.Excess)
	if len(k.Undoes) > 0 {
		text += "; it still gives what this takes away: " + strings.Join(k.Undoes, ", ")
	}
	return text
}
