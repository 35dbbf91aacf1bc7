package registry

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// played is a sequence with what came of it.
type played struct {
	sequence sequence
	history  *history
}

// playAll plays the sequences of some seeds on one server.
func playAll(t *testing.T, seed uint64, n int) []played {
	t.Helper()
	s, err := newServer(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]played, n)
	for i := range out {
		seq := generate(seed+uint64(i), usualOverlap)
		h, err := s.play(seq)
		if err != nil {
			t.Fatalf("%v\n%s", err, seq)
		}
		out[i] = played{seq, h}
	}
	return out
}

// mistakes are ways to misread what was observed; false drops the observation.
var mistakes = map[string]func(o *observe.Observation) bool{
	"ends are not seen":                      func(o *observe.Observation) bool { return !o.Deleted || o.Unknown || o.Complete || o.AllOf },
	"what may have gone is there still":      func(o *observe.Observation) bool { return !o.Deleted || !o.Unknown },
	"what may have gone has gone":            func(o *observe.Observation) bool { o.Unknown = o.Unknown && !o.Deleted; return true },
	"collections are deleted without effect": func(o *observe.Observation) bool { return !o.AllOf || !o.Deleted },
	"writes without content change nothing":  func(o *observe.Observation) bool { return !o.Unknown || o.Deleted || o.AllOf },
	"objects without a name are not there":   func(o *observe.Observation) bool { return !o.Unknown || !o.AllOf },
	"updates end nothing":                    func(o *observe.Observation) bool { o.Update = false; return true },
	"pods are not bound":                     func(o *observe.Observation) bool { return !bytes.Contains(o.Object, []byte(`"Binding"`)) },
	"pods keep their finalizers": func(o *observe.Observation) bool {
		return o.Resource != kept.Pods || !o.Unchanged || o.UID != ""
	},
	"pods are not evicted":        func(o *observe.Observation) bool { return !bytes.Contains(o.Object, []byte(`"Eviction"`)) },
	"nodes are mistaken":          replace(`"m1"`, `"m2"`),
	"accounts are mistaken":       replace(`"account":"s1"`, `"account":"s2"`),
	"rules are mistaken":          replace(`"secrets"`, `"services"`),
	"subjects are mistaken":       replace(`"jane"`, `"joan"`),
	"deletions are not asked for": replace(`"deletionTimestamp"`, `"deletedAt"`),
	"uids are mistaken": func(o *observe.Observation) bool {
		if o.UID != "" {
			o.UID = "u"
		}
		return true
	},
	"writes were done before they were": func(o *observe.Observation) bool {
		if o.Source == observe.SourceAudit && !o.NotAfter.IsZero() {
			o.NotBefore, o.NotAfter = o.NotBefore.Add(-3*time.Second), o.NotAfter.Add(-3*time.Second)
		}
		return true
	},
	"listings are complete before they end": func(o *observe.Observation) bool {
		if o.Source == observe.SourceSnapshot {
			o.NotAfter = o.NotBefore
		}
		return true
	},
}

// replace misreads a text of an object.
func replace(from, to string) func(o *observe.Observation) bool {
	return func(o *observe.Observation) bool {
		o.Object = bytes.ReplaceAll(o.Object, []byte(from), []byte(to))
		return true
	}
}

// heldBack is an eviction of a pod that a finalizer holds back, of which nothing but its having been
// written was recorded: random sequences hardly ever have one.
const heldBack = `{"Level":"shipped","Born":true}
{"User":"alice","Method":"POST","Path":"/api/v1/namespaces/n1/pods","Object":"pods/n1/a","Type":"application/json","Body":"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n1\"},\"spec\":{\"serviceAccountName\":\"s1\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}","Wait":1000000000,"Pace":"0s+0s"}
{"User":"alice","Method":"PATCH","Path":"/api/v1/namespaces/n1/pods/a","Object":"pods/n1/a","Type":"application/strategic-merge-patch+json","Body":"{\"metadata\":{\"finalizers\":[\"e.io/x\"]}}","Wait":1000000000,"Pace":"0s+0s"}
{"User":"alice","Method":"POST","Path":"/api/v1/namespaces/n1/pods/a/eviction","Object":"pods/n1/a","Type":"application/json","Body":"{\"kind\":\"Eviction\",\"apiVersion\":\"policy/v1\",\"metadata\":{\"name\":\"a\"}}","Wait":1000000000,"Pace":"0s+0s"}`

// playText plays a sequence that was written down.
func playText(t *testing.T, text string) played {
	t.Helper()
	s, err := newServer(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.play(seq)
	if err != nil {
		t.Fatal(err)
	}
	return played{seq, h}
}

// TestMistakes wants each mistake to be found out by some sequence.
func TestMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := append(playAll(t, 1, 400), playText(t, heldBack))
		for name, mistake := range mistakes {
			found := slices.IndexFunc(all, func(p played) bool {
				return len(compare(p.history, p.sequence, func(obs []observe.Observation) []observe.Observation {
					out := obs[:0]
					for i := range obs {
						if mistake(&obs[i]) {
							out = append(out, obs[i])
						}
					}
					return out
				}).found) > 0
			})
			if found < 0 {
				t.Errorf("%s: not found out by %d sequences", name, len(all))
			} else {
				t.Logf("%s: found out by sequence %d", name, found+1)
			}
		}
	})
}
