package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/forget"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// writer writes policy objects one after the other.
type writer struct {
	rng *rand.Rand
	n   int
}

// write is the next write of a role, of so many bytes that do not compress.
func (w *writer) write(cluster, name string, bytes int) verdict.PolicyVersion {
	w.n++
	noise := make([]byte, bytes)
	for i := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[w.rng.IntN(36)]
	}
	at := time.Date(2026, 11, 20, 9, 0, w.n, 0, time.UTC)
	o := observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: name, UID: "uid-" + name,
		ResourceVersion: fmt.Sprint(1000 + w.n), NotBefore: at, NotAfter: at.Add(time.Millisecond),
		Object: fmt.Appendf(nil,
			`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"uid":"uid-%[1]s",`+
				`"resourceVersion":"%d"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["r%[2]d"],"resourceNames":[%q]}]}`,
			name, 1000+w.n, noise)}
	return verdict.PolicyVersion{Cluster: cluster, Resource: o.Resource, Name: name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Observation: o.Append(nil), Observed: at,
		Position: event.Position{Epoch: 1, Offset: int64(w.n)}}
}

// contents returns the resourceVersions of an object's observations whose contents are kept, those
// that were forgotten, and all bytes.
func contents(t *testing.T, s *storage.Store, cluster, name string) (kept, forgotten []string, bytes int) {
	t.Helper()
	if err := s.LoadPolicy(context.Background(), []string{cluster}, func(v verdict.PolicyVersion) error {
		o, err := observe.Decode(v.Observation)
		if err != nil || v.Name != name {
			return err
		}
		bytes += len(v.Observation)
		if o.Object != nil {
			kept = append(kept, o.ResourceVersion)
		} else if o.Unknown && o.ResourceVersion == v.ResourceVersion && o.UID == v.UID {
			forgotten = append(forgotten, o.ResourceVersion)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return kept, forgotten, bytes
}

// TestPolicyTrim: of an object that is written all day the newest contents stay, and of the others it
// stays that there were some; objects that are written now and then keep all.
func TestPolicyTrim(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	const share = 400_000
	s.TrimBeyond(share, 1<<40, 8<<10)
	w := &writer{rng: rand.New(rand.NewPCG(1, 2))}
	var all []verdict.PolicyVersion
	for i := range 60 {
		all = append(all, w.write("c", "hostile", 30_000))
		if i%20 == 0 {
			all = append(all, w.write("c", "ordinary", 3000), w.write("other", "hostile", 30_000))
		}
	}
	all = append(all, w.write("c", "huge", 2*share))
	if err := s.SavePolicy(ctx, all); err != nil {
		t.Fatal(err)
	}
	retain := func() error { return s.Retain(ctx, storage.Retention{Forget: forget.Content}) }

	// One that ends halfway has lost nothing.
	calls := 0
	stop := errors.New("stop")
	if err := s.Retain(ctx, storage.Retention{Forget: func(b []byte) ([]byte, error) {
		if calls++; calls > 20 {
			return nil, stop
		}
		return forget.Content(b)
	}}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if kept, _, _ := contents(t, s, "c", "hostile"); len(kept) != 60 {
		t.Errorf("%d contents after a trim that ended halfway, want all", len(kept))
	}
	for range 2 {
		if err := retain(); err != nil {
			t.Fatal(err)
		}
		kept, forgotten, bytes := contents(t, s, "c", "hostile")
		if len(kept) < 5 || len(kept)+len(forgotten) != 60 || kept[len(kept)-1] != all[len(all)-2].ResourceVersion || bytes > share {
			t.Errorf("%d contents kept, the last of %s, %d forgotten, %d bytes", len(kept), kept[len(kept)-1], len(forgotten), bytes)
		}
		for _, x := range []struct {
			cluster, name string
			want          int
		}{{"c", "ordinary", 3}, {"other", "hostile", 3}, {"c", "huge", 1}} {
			if kept, forgotten, _ := contents(t, s, x.cluster, x.name); len(kept) != x.want || len(forgotten) != 0 {
				t.Errorf("%s of %s: %d contents kept, %d forgotten", x.name, x.cluster, len(kept), len(forgotten))
			}
		}
	}
	ends, err := s.PolicyEnds(ctx)
	if err != nil || ends[0].Offset != all[len(all)-1].Position.Offset+1 {
		t.Errorf("reading goes on at %+v: %v", ends[0], err)
	}

	// Delivered again, a write is forgotten again.
	if err := s.SavePolicy(ctx, all[:30]); err != nil {
		t.Fatal(err)
	}
	s.TrimBeyond(share, 1<<40, 8<<10)
	if err := retain(); err != nil {
		t.Fatal(err)
	}
	if kept, forgotten, _ := contents(t, s, "c", "hostile"); len(kept)+len(forgotten) != 60 {
		t.Errorf("delivered again: %d kept, %d forgotten", len(kept), len(forgotten))
	}
}

// TestPolicyTrimOfACluster: large contents of ever new objects have an end for all of a cluster; the
// newest of each object and small ones stay, and so does another cluster's.
func TestPolicyTrimOfACluster(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	const most = 1_000_000
	s.TrimBeyond(1<<40, most, 8<<10)
	w := &writer{rng: rand.New(rand.NewPCG(1, 2))}
	var all []verdict.PolicyVersion
	for range 20 {
		for i := range 8 {
			all = append(all, w.write("c", fmt.Sprint("r", i), 10_000))
		}
		all = append(all, w.write("c", "small", 2000), w.write("other", "r0", 10_000))
	}
	last := w.write("c", "r0", 10_000)
	if err := s.SavePolicy(ctx, append(all, last)); err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(ctx, storage.Retention{Forget: forget.Content}); err != nil {
		t.Fatal(err)
	}
	total := 0
	for i := range 8 {
		kept, forgotten, bytes := contents(t, s, "c", fmt.Sprint("r", i))
		if total += bytes; len(kept) == 0 || len(forgotten) == 0 {
			t.Errorf("r%d: %d contents kept, %d forgotten", i, len(kept), len(forgotten))
		}
		if i == 0 && kept[len(kept)-1] != last.ResourceVersion {
			t.Errorf("kept is %s", strings.Join(kept, " "))
		}
	}
	if total > most || total < most/2 {
		t.Errorf("%d bytes are kept", total)
	}
	for _, x := range [][2]string{{"c", "small"}, {"other", "r0"}} {
		if kept, forgotten, _ := contents(t, s, x[0], x[1]); len(kept) != 20 || len(forgotten) != 0 {
			t.Errorf("%s of %s: %d contents kept, %d forgotten", x[1], x[0], len(kept), len(forgotten))
		}
	}
}

// TestPolicyTrimOfLostAnswers: contents of writes that may not have been done are forgotten like others, but for
// their outline; the newest content that is certain stays, however much came after it.
func TestPolicyTrimOfLostAnswers(t *testing.T) {
	for name, limits := range map[string][2]int64{"of an object": {400_000, 1 << 40}, "of a cluster": {1 << 40, 400_000}} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Open(t)
			ctx := context.Background()
			s.TrimBeyond(limits[0], limits[1], 8<<10)
			w := &writer{rng: rand.New(rand.NewPCG(1, 2))}
			var all []verdict.PolicyVersion
			for i := range 60 {
				v := w.write("c", "hostile", 30_000)
				if i != 9 {
					o, err := observe.Decode(v.Observation)
					if err != nil {
						t.Fatal(err)
					}
					o.UID, o.ResourceVersion, o.Unknown, o.Patch = "", "", true, i%2 == 0
					v.UID, v.ResourceVersion, v.Observation = "", "", o.Append(nil)
				}
				all = append(all, v)
			}
			if err := s.SavePolicy(ctx, all); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Retain(ctx, storage.Retention{Forget: forget.Content}); err != nil {
					t.Fatal(err)
				}
				whole, outlines, certain, bytes := 0, 0, 0, 0
				if err := s.LoadPolicy(ctx, []string{"c"}, func(v verdict.PolicyVersion) error {
					o, err := observe.Decode(v.Observation)
					switch bytes += len(v.Observation); {
					case len(o.Object) < 1000 && o.Unknown && o.Object != nil:
						outlines++
					case o.Unknown:
						whole++
					case o.Object != nil:
						certain++
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if whole+outlines != 59 || certain != 1 || whole < 5 || bytes > 400_000 {
					t.Errorf("%d whole, %d outlines, %d certain, %d bytes", whole, outlines, certain, bytes)
				}
				s.TrimBeyond(limits[0], limits[1], 8<<10) // and it is looked at again
			}
		})
	}
}
