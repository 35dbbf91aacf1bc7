package recorder

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/test/apiserver/controlplane"
)

var reloads = regexp.MustCompile(`(?m)^apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds\{[^}]*status="(\w+)"\} (\S+)$`)

// Reloaded reads in the apiserver's metrics when it last took a file of authorizers
// ("success"), or did not take one ("failure").
func Reloaded(metrics, status string) (time.Time, bool) {
	for _, m := range reloads.FindAllStringSubmatch(metrics, -1) {
		if m[1] != status {
			continue
		}
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err == nil && seconds > 0 {
			return time.UnixMicro(int64(seconds * 1e6)), true
		}
	}
	return time.Time{}, false
}

// Fails writes a file that the apiserver does not take, and waits until it says so.
func (r *Recorder) Fails(t testing.TB, name string, text []byte) {
	t.Helper()
	r.write(t, name, text)
	controlplane.Poll(t, "the file to be refused", func(context.Context) (bool, string) {
		_, metrics := r.Admin.Do(t, "GET /metrics", &Scenario{})
		_, failed := Reloaded(metrics, "failure")
		return failed, ""
	})
}
