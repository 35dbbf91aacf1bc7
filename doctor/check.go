package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
)

// States of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn" // it works, but somebody should look into it
	CheckFail = "fail" // something that is wanted does not work
)

// Check is the result of one check.
type Check struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster,omitempty"` // absent: of the whole installation
	State   string `json:"state"`             // ok, warn, fail
	Text    string `json:"text"`
	Todo    string `json:"todo,omitempty"` // what to do, several lines, commands among them
}

// Checks collects them.
type Checks []Check

// Add adds a check: what was found, how bad it is, and what to do about it.
func (c *Checks) Add(id, state, todo, format string, args ...any) {
	*c = append(*c, Check{ID: id, State: state, Text: fmt.Sprintf(format, args...), Todo: todo})
}

// How long before a certificate expires it is warned of. The server's renews itself earlier: one this close cannot be renewed.
const (
	warnAuthority = 90 * 24 * time.Hour
	warnLeaf      = 30 * 24 * time.Hour
)

// expiry judges when something ends; todo reports whether anything is to be done.
func expiry(now, end time.Time, warn time.Duration) (state string, todo bool) {
	switch left := end.Sub(now); {
	case left <= 0:
		return CheckFail, true
	case left < warn:
		return CheckWarn, true
	}
	return CheckOK, false
}

// Failure names the checks that failed, nil if none did.
func (c Checks) Failure() error {
	var failed []string
	for _, check := range c {
		if check.State == CheckFail {
			name := check.ID
			if check.Cluster != "" {
				name += " of " + check.Cluster
			}
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return cli.ExitWith(cli.ExitFinding, fmt.Errorf("not in order: %s", strings.Join(failed, ", ")))
}
