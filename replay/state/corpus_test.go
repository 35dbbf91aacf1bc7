package state_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/test/testfile"
)

// policyWrites returns the observations of a log's policy writes, in the log's order.
func policyWrites(t testing.TB, log []byte) []observe.Observation {
	t.Helper()
	var all []observe.Observation
	for line := range bytes.Lines(log) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		obs, err := observe.FromEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, obs...)
	}
	return all
}

func readSnapshot(t testing.TB, dir, name string) observe.Snapshot {
	t.Helper()
	snap, _, err := observe.ReadSnapshot(bytes.NewReader(testfile.Read(t, filepath.Join(dir, name))))
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// corpora returns the folders with a recorded log, its start and its end state: the small
// slice in testdata, and a full corpus when the environment names one.
func corpora(t *testing.T) map[string]string {
	dirs := map[string]string{"slice": "testdata/slice"}
	if dir := os.Getenv("RETRIAL_CORPUS"); dir != "" {
		dirs["corpus"] = dir
	} else {
		t.Log("RETRIAL_CORPUS is not set: the slice only")
	}
	return dirs
}

var future = time.Unix(0, math.MaxInt64/2)

// describe renders what a State says now, one object a line: kind, name, uid and
// resourceVersion of everything present, and everything unknown.
func describe(s *state.State, at time.Time) []string {
	var out []string
	v := s.RBAC(at)
	v.RBAC.All(func(k rbacindex.Key, obj any) bool {
		out = append(out, fmt.Sprintf("%s %s", k, fingerprint(obj)))
		return true
	})
	for _, k := range v.Unknown {
		out = append(out, fmt.Sprintf("%s unknown", k))
	}
	for _, k := range v.Doubted {
		o, _ := v.Most.Get(k)
		out = append(out, fmt.Sprintf("%s at most %s", k, fingerprint(o)))
	}
	for _, k := range v.UnknownKinds {
		out = append(out, fmt.Sprintf("%s unknown", k))
	}
	slices.Sort(out)
	return out
}

// The start state and the log's own writes give the end state, object by object.
func TestCorpusEndState(t *testing.T) {
	for name, dir := range corpora(t) {
		t.Run(name, func(t *testing.T) {
			s := state.New("corpus")
			if _, err := s.LoadSnapshot(readSnapshot(t, dir, "state-start.json")); err != nil {
				t.Fatal(err)
			}
			writes := policyWrites(t, testfile.Read(t, filepath.Join(dir, "audit.jsonl")))
			for _, o := range writes {
				s.Apply(o)
			}
			end := readSnapshot(t, dir, "state-end.json")
			for _, kind := range []string{
				kept.Roles, kept.ClusterRoles, kept.RoleBindings, kept.ClusterRoleBindings, kept.Namespaces, kept.ServiceAccounts,
			} {
				if !slices.Contains(end.Kinds, kind) {
					t.Fatalf("end state is complete for %q only", end.Kinds)
				}
			}
			// Not every version of pods and nodes is kept.
			name := func(resource, uid, version string) string {
				if resource == kept.Pods || resource == kept.Nodes {
					return uid
				}
				return uid + "@" + version
			}
			want := map[string]string{}
			for _, o := range end.Objects {
				want[o.Resource+" "+o.Namespace+"/"+o.Name] = name(o.Resource, o.UID, o.ResourceVersion)
			}
			got := map[string]string{}
			for _, o := range slices.Concat(writes, readSnapshot(t, dir, "state-start.json").Objects) {
				if !slices.Contains(end.Kinds, o.Resource) {
					continue
				}
				key := o.Resource + " " + o.Namespace + "/" + o.Name
				if v, known := s.Version(o.Resource, o.Namespace, o.Name, future); known == state.Present {
					got[key] = name(o.Resource, v.UID, v.ResourceVersion)
				} else if known == state.Unknown {
					got[key] = "unknown"
				}
			}
			for key, w := range want {
				if got[key] != w {
					t.Errorf("%s: %q, want %q", key, got[key], w)
				}
			}
			for key, g := range got {
				if want[key] == "" {
					t.Errorf("%s: %q, not in the end state", key, g)
				}
			}
			// The RBAC view says the same in content as one built from the end state alone.
			alone := state.New("corpus")
			if _, err := alone.LoadSnapshot(end); err != nil {
				t.Fatal(err)
			}
			if d := diff(describe(s, future), describe(alone, future)); d != "" {
				t.Errorf("RBAC view differs from the end state's:\n%s", d)
			}
			t.Logf("%d observations, %d objects at the end, stats %+v", len(writes), len(want), s.Stats())
		})
	}
}

// diff lists lines of a that b lacks (-) and the reverse (+).
func diff(a, b []string) string {
	var sb strings.Builder
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok {
			fmt.Fprintf(&sb, "- %s\n", x)
		}
	}
	for _, x := range b {
		if _, ok := slices.BinarySearch(a, x); !ok {
			fmt.Fprintf(&sb, "+ %s\n", x)
		}
	}
	return sb.String()
}

// What the stream says about policy does not need the answers' status nor annotations: a
// log without them gives the same observations.
func TestStrippedAnswers(t *testing.T) {
	for name, dir := range corpora(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			for line := range bytes.Lines(testfile.Read(t, filepath.Join(dir, "audit.jsonl"))) {
				e, err := event.Decode(bytes.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				want, err := observe.FromEvent(e)
				if err != nil {
					t.Fatal(err)
				}
				if len(e.ResponseObject) == 0 || e.Verb == "patch" && strings.Contains(e.RequestURI, "/pods/") {
					continue // nothing reports whether it succeeded, or created what it patched
				}
				e.ResponseStatus = nil
				e.Annotations = slices.DeleteFunc(slices.Clone(e.Annotations), func(p event.Pair) bool {
					return strings.HasPrefix(p.Key, "authorization.")
				})
				got, err := observe.FromEvent(e)
				if err != nil {
					t.Fatal(err)
				}
				if dump(got) != dump(want) {
					t.Fatalf("%s %s: got\n%swant\n%s", e.Verb, e.RequestURI, dump(got), dump(want))
				}
				n += len(want)
			}
			if n == 0 {
				t.Fatal("no observation")
			}
		})
	}
}

// Every event that makes observations is one the receiver copies to the policy topic.
func TestKeepsPolicyCovers(t *testing.T) {
	for name, dir := range corpora(t) {
		t.Run(name, func(t *testing.T) {
			for line := range bytes.Lines(testfile.Read(t, filepath.Join(dir, "audit.jsonl"))) {
				e, err := event.Decode(bytes.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				obs, err := observe.FromEvent(e)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, sighted := event.Sighting(e); sighted {
					continue // copied once in a while
				}
				if len(obs) > 0 && !event.KeepsPolicy(e) {
					t.Fatalf("%s %s makes %d observations but is not kept", e.Verb, e.RequestURI, len(obs))
				}
			}
		})
	}
}
