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
	f, err := Run(writes(t), 1, false, Retrial)
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

// writes returns how many writes are tried.
func writes(t *testing.T) uint64 {
	t.Helper()
	n := uint64(10000)
	if v := os.Getenv("ORACLE_ESCALATIONS"); v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestDoubts compares with the real storages where answers to earlier writes were lost: what is said for
// certain is right, and much is.
func TestDoubts(t *testing.T) {
	f, err := Run(writes(t), 3, true, Retrial)
	t.Logf("%+v", f)
	if err != nil {
		t.Fatal(err)
	}
	for what, share := range map[string]uint64{
		"refused": f.Refused, "absent": f.Absent, "by verb": f.ByVerb, "covered": f.Covered, "unchecked": f.Unchecked, "exempt": f.Exempt,
		"open": f.Open,
	} {
		if share*300 < f.Writes {
			t.Errorf("%s: %d of %d writes; the generator has lost its aim", what, share, f.Writes)
		}
	}
	if f.Open*2 > f.Writes {
		t.Errorf("%d of %d writes are open: what is in doubt concerns too much", f.Open, f.Writes)
	}
}

// TestDoubtsMatter: whoever takes what is open for refused, or for let through, is wrong.
func TestDoubtsMatter(t *testing.T) {
	for _, decided := range []verdict.Decision{verdict.DecisionForbid, verdict.DecisionAllow} {
		f, err := Run(20000, 4, true, func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
			v := eng.Replay(e, s)
			for i := range v.Implied {
				if c := &v.Implied[i]; c.Replayed == verdict.DecisionNone {
					c.Replayed, c.Covered = decided, decided == verdict.DecisionAllow
				}
			}
			return v
		})
		if err == nil {
			t.Errorf("%s: not found in %d writes", decided, f.Writes)
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
			f, err := Run(20000, 2, false, judge)
			if err == nil {
				t.Errorf("not found in %d writes", f.Writes)
			}
		})
	}
}
