package escalation

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// TestStorages compares with the real storages; ORACLE_ESCALATIONS writes.
func TestStorages(t *testing.T) {
	n := uint64(10000)
	if v := os.Getenv("ORACLE_ESCALATIONS"); v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Run(n, 1, Retrial)
	t.Logf("%+v", f)
	if err != nil {
		t.Fatal(err)
	}
	for what, share := range map[string]uint64{
		"refused": f.Refused, "absent": f.Absent, "by verb": f.ByVerb, "covered": f.Covered, "unchecked": f.Unchecked, "exempt": f.Exempt,
	} {
		if share*200 < f.Writes {
			t.Errorf("%s: %d of %d writes; the generator has lost its aim", what, share, f.Writes)
		}
	}
}

// TestMutants sees that something wrong is found.
func TestMutants(t *testing.T) {
	changed := func(change func(*event.Event)) Judge {
		return func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
			c := *e
			change(&c)
			return eng.Replay(&c, s)
		}
	}
	body := func(old, new string) Judge {
		return changed(func(e *event.Event) { e.RequestObject = []byte(strings.ReplaceAll(string(e.RequestObject), old, new)) })
	}
	for name, judge := range map[string]Judge{
		"takes every verb for one":      body(`"*"`, `"get"`),
		"forgets names":                 body(`"resourceNames"`, `"none"`),
		"forgets paths":                 body(`"nonResourceURLs"`, `"none"`),
		"forgets the aggregation":       body(`"aggregationRule"`, `"none"`),
		"takes roles for cluster roles": body(`"kind":"Role"`, `"kind":"ClusterRole"`),
		"forgets the groups":            changed(func(e *event.Event) { e.User.Groups = []string{"system:authenticated"} }),
		"forgets the namespace": changed(func(e *event.Event) {
			e.RequestURI = strings.Replace(e.RequestURI, "/namespaces/d", "/namespaces/e", 1)
		}),
		"sees no bodies": changed(func(e *event.Event) { e.RequestObject = nil }),
		"implies nothing": func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
			v := eng.Replay(e, s)
			v.Implied = nil
			return v
		},
		"allows by verb alone": func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
			v := eng.Replay(e, s)
			for i := range v.Implied {
				if c := &v.Implied[i]; c.Covered && len(c.Grants) == 0 {
					c.Replayed, c.Covered = verdict.DecisionForbid, false
				}
			}
			return v
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Run(20000, 2, judge)
			if err == nil {
				t.Errorf("not found in %d writes", f.Writes)
			}
		})
	}
}
