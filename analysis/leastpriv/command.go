package leastpriv

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/internal/phrase"
)

// Command returns the command that removes the binding. Anybody may choose names: they are quoted for a shell, and comments escape what
// does not print, so such a command has to be read first.
func (r *Remove) Command() (string, error) {
	where := ""
	if r.Namespace != "" {
		where = " -n " + phrase.ShellWord(r.Namespace)
	}
	object := phrase.ShellWord(strings.ToLower(r.Kind) + "/" + r.Name)
	if r.Action == ActionDelete {
		return "kubectl delete " + object + where, nil
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
	return "kubectl patch " + object + where + " --type=merge -p " + phrase.ShellWord(`{"subjects":`+string(left.Subjects)+`}`), nil
}
