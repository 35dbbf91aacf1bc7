package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// randomNamespaces makes a history of namespaces and service accounts: creations, ends, listings,
// writes whose names or contents were not recorded; and of a token and a certificate issued.
func randomNamespaces(t *testing.T, rnd *rand.Rand) []observe.Observation {
	day := clock(t, "12:00:00")
	var obs []observe.Observation
	bounds := func(o *observe.Observation) {
		o.NotBefore = day.Add(time.Duration(5+rnd.IntN(55)) * time.Second)
		o.NotAfter = o.NotBefore.Add(time.Duration(rnd.IntN(8)) * time.Second)
	}
	named := func(res, name string) *fields {
		f := newFields(t, res, name, nil)
		rv := 1 + rnd.IntN(40)
		f.opt["rv"], f.opt["uid"] = strconv.Itoa(rv), fmt.Sprintf("%s%d", name, rv/10)
		if rv%7 != 0 {
			f.opt["created"] = day.Add(time.Duration(rv/10*15) * time.Second).Format(time.RFC3339)
		}
		if rv%10 > 7 && res == kept.Namespaces {
			f.opt["deleting"] = day.Add(time.Duration(rv/10*15+8) * time.Second).Format(time.RFC3339)
		}
		return f
	}
	names := map[string][]string{kept.Namespaces: {"a", "b", "kube-system"}, kept.ServiceAccounts: {"a/x", "b/x"}}
	for range 3 + rnd.IntN(12) {
		res := []string{kept.Namespaces, kept.Namespaces, kept.ServiceAccounts}[rnd.IntN(3)]
		f := named(res, names[res][rnd.IntN(len(names[res]))])
		o := observe.Observation{Source: observe.SourceAudit, Resource: res, Namespace: f.namespace, Name: f.name}
		bounds(&o)
		switch rnd.IntN(8) {
		case 0, 1, 2, 3:
			o.UID, o.ResourceVersion, o.Object = f.opt["uid"], f.opt["rv"], f.object(true)
		case 4:
			o.UID, o.Deleted = f.opt["uid"], true
		case 5:
			o.Unknown = true
		case 6:
			o.Name, o.AllOf = "", true
			o.Deleted, o.Unknown = rnd.IntN(2) == 0, true
			if rnd.IntN(3) == 0 {
				o.Namespace = ""
			}
		case 7:
			snap := observe.Snapshot{Began: o.NotBefore, Ended: o.NotAfter, Kinds: []string{res}}
			for _, name := range names[res] {
				if rnd.IntN(2) == 0 {
					continue
				}
				g := named(res, name)
				snap.Objects = append(snap.Objects, observe.Observation{Resource: res, Namespace: g.namespace, Name: g.name,
					UID: g.opt["uid"], ResourceVersion: g.opt["rv"], Object: g.object(true)})
			}
			obs = append(obs, snap.Observations()...)
			continue
		}
		obs = append(obs, o)
	}
	for _, id := range []string{"JTI=known", "X509SHA256=known"} {
		if rnd.IntN(2) == 0 {
			o := observe.Observation{Source: observe.SourceAudit, Resource: kept.Credentials, Namespace: "a", Name: id,
				Object: []byte(`{"kind":"IssuedCredential","reduced":{"issued":{"at":"2026-03-01T12:00:30Z","account":"x"}}}`)}
			bounds(&o)
			obs = append(obs, o)
		}
	}
	if rnd.IntN(4) == 0 {
		o := observe.Observation{Source: observe.SourceAudit, Resource: kept.Pods, Namespace: "a", Name: "p", Unknown: true}
		bounds(&o)
		obs = append(obs, o)
	}
	return obs
}

// Whatever is learnt, and in whatever order: where the answer about a namespace, a service
// account, a credential or a pod changes, an effect says so, for that time and those whom it
// concerns.
func TestEffectsCoverEveryChange(t *testing.T) {
	type question struct {
		what, namespace, user string // what: of credentials the id
		at                    time.Time
	}
	var questions []question
	for _, id := range []string{"JTI=known", "JTI=unheard-of", "X509SHA256=known", "X509SHA256=unheard-of", "pod"} {
		for _, at := range []time.Time{clock(t, "00:00:00"), clock(t, "12:00:30"), clock(t, "23:59:59")} {
			questions = append(questions, question{id, "b", "somebody", at})
		}
	}
	for i := range 140 {
		at := clock(t, "12:00:00").Add(time.Duration(i) * 500 * time.Millisecond)
		for _, ns := range []string{"a", "b", "kube-system", "unheard-of"} {
			questions = append(questions, question{"namespace", ns, "somebody", at})
		}
		for _, ns := range []string{"a", "b"} {
			questions = append(questions, question{"account", ns, "system:serviceaccount:" + ns + ":x", at}, question{"account of pods",
				ns, "somebody", at})
		}
	}
	ask := func(s *state.State) []string {
		out := make([]string, len(questions))
		for i, q := range questions {
			switch q.what {
			case "namespace":
				out[i] = fmt.Sprint(s.Namespace(q.namespace, q.at, q.at))
			case "account":
				uid, known := s.ServiceAccount(q.namespace, "x", q.at)
				out[i] = fmt.Sprint(uid, known)
			case "account of pods":
				known, changed := s.ServiceAccountIn(q.namespace, "x", q.at, q.at)
				out[i] = fmt.Sprint(known, changed)
			case "pod":
				_, known := s.PodByUID("unheard-of")
				out[i] = fmt.Sprint(known)
			default:
				c, known := s.Credential(q.what)
				out[i] = fmt.Sprint(c.Issued, known)
			}
		}
		return out
	}
	covers := func(e state.Effect, q question) bool {
		s := e.Subjects()
		if e.Credential != "" {
			return e.Credential == q.what
		}
		who := s.All || slices.Contains(s.Users, q.user)
		where := s.AllNamespaces || slices.Contains(s.Namespaces, q.namespace)
		return who && where && !q.at.Before(e.From) && (e.To.IsZero() || !q.at.After(e.To))
	}
	changes := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		var steps [][]observe.Observation
		for _, o := range randomNamespaces(t, rnd) {
			steps = append(steps, []observe.Observation{o})
		}
		if rnd.IntN(2) == 0 {
			steps = append(steps, observe.Born())
		}
		rnd.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		s := state.New("c")
		was := ask(s)
		for n, obs := range steps {
			effects := s.Apply(obs...)
			is := ask(s)
			for i, q := range questions {
				if was[i] == is[i] {
					continue
				}
				changes++
				if !slices.ContainsFunc(effects, func(e state.Effect) bool { return covers(e, q) }) {
					t.Fatalf("seed %d, step %d: %s %s at %s was %s and is %s, which no effect tells: %+v", seed, n, q.what, q.namespace,
						q.at.Format("15:04:05.0"), was[i], is[i], effects)
				}
			}
			was = is
		}
	}
	if changes == 0 {
		t.Fatal("nothing ever changed")
	}
}
