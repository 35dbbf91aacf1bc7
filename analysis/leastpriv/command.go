package leastpriv

import (
	"encoding/json"
	"fmt"

	"github.com/retrial-io/retrial/internal/phrase"
)

// Command returns the command that removes the binding. Anybody may choose names: they are quoted for a shell, and comments escape what
// does not print, so such a command has to be read first.
func (r *Remove) Command() (string, error) {
	object := phrase.KubectlObject(r.Kind, r.Namespace, r.Name)
	if r.Action == ActionDelete {
		return "kubectl delete " + object, nil
	}
	raw, err := json.Marshal(r.Object)
	if err != nil {
		return "", fmt.Errorf("print %s %s: %w", r.Kind, r.Name, err)
	}
	var left struct {
		Subjects json.RawMessage `json:"subjects"`
	}
	if err := json.Unmarshal(raw, &left); err != nil {
		return "", fmt.Errorf("print %s %s: %w", r.Kind, r.Name, err)
	}
	return "kubectl patch " + object + " --type=merge -p " + phrase.ShellWord(`{"subjects":`+string(left.Subjects)+`}`), nil
}
