package storage_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestConfigUse: requests are counted by cluster, apiserver, hour and configuration; those that
// were taken back, or never judged, are not.
func TestConfigUse(t *testing.T) {
	s := storagetest.Open(t)
	hour := time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC)
	var want []queries.ConfigUse
	in := rows(t, "c", 0)
	i := 0
	add := func(cluster, server, config string, at time.Time, n int) {
		for range n {
			e := *in[i].Event
			e.RequestReceivedTimestamp, e.StageTimestamp = at, at.Add(time.Second)
			r := &in[i]
			r.Event, r.Cluster, r.APIServer = &e, cluster, server
			r.Request = event.RequestKey(cluster, &e)
			r.EventKey = event.EventKey(r.Request, &e)
			v := *r.Verdict
			v.Config, r.Verdict = config, &v
			i++
		}
		want = append(want,
			queries.ConfigUse{Cluster: cluster, APIServer: server, Hour: at.Truncate(time.Hour), Config: config, Requests: int64(n)})
	}
	add("a", "", "x", hour, 2)
	add("a", "", "y", hour.Add(59*time.Minute+59*time.Second), 3)
	add("a", "wardle", "x", hour.Add(time.Minute), 1)
	add("a", "", "x", hour.Add(time.Hour), 4)
	add("b", "", "x", hour, 5)
	unjudged := in[i]
	unjudged.Verdict = nil
	insert(t, s, "a", append(in[:i:i], unjudged))
	back := in[0]
	back.Sign = -1
	again := in[0]
	again.Revision, again.Verdict = in[0].Revision+1, in[2].Verdict
	insert(t, s, "b", []verdict.Row{back, again})
	want[0].Requests--
	want[1].Requests++
	for cluster, want := range map[string][]queries.ConfigUse{"": want, "a": want[:4], "b": want[4:], "none": nil} {
		got, err := s.ConfigUse(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("of %q: %+v\nwant %+v", cluster, got, want)
		}
	}
}
