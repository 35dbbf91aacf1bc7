package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// together is what the first page takes when several users open it at the same moment.
type together struct {
	Users  int            `json:"users"`
	Time   spread         `json:"milliseconds"` // from the first question of a page to its last answer
	CPU    float64        `json:"cpu_milliseconds_a_page"`
	Status map[string]int `json:"answers_by_status"`
}

const togetherUsers, togetherRounds = 10, 8

// askDoor asks the API a question as one of its users, who are told apart by their addresses, and returns the status of the answer.
func askDoor(ctx context.Context, door http.Handler, user int, name string, values url.Values) string {
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+name+"?"+values.Encode(), nil)
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", user+1)
	door.ServeHTTP(w, r)
	return strconv.Itoa(w.Code)
}

// askTogether opens the first page for many users at once, as the page does: by its questions' names, all at once, through the queue of
// each.
func (b *storageBench) askTogether(ctx context.Context) (*together, error) {
	clusters, err := b.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	values := url.Values{"cluster": {benchCluster}, "from": {clusters[0].First.Format(time.RFC3339)},
		"to": {clusters[0].Last.Add(time.Minute).Format(time.RFC3339)}}
	service := &query.Service{Store: ruled{b.store, nil}}
	door := api.New(service.Questions(), nil, zap.NewNop(), api.LongestQuery)
	out := &together{Users: togetherUsers, Status: map[string]int{}}
	var mu sync.Mutex
	var took []float64
	ask := func(user int, name string) {
		status := askDoor(ctx, door, user, name, values)
		mu.Lock()
		out.Status[status]++
		mu.Unlock()
	}
	cpu := procstat.Own()
	for range togetherRounds {
		var users sync.WaitGroup
		for user := range togetherUsers {
			users.Go(func() {
				began := time.Now()
				var page sync.WaitGroup
				for _, name := range []string{"overview", "events", "drift", "findings"} {
					page.Go(func() { ask(user, name) })
				}
				page.Wait()
				mu.Lock()
				took = append(took, float64(time.Since(began).Microseconds())/1e3)
				mu.Unlock()
			})
		}
		users.Wait()
	}
	out.CPU = float64((procstat.Own() - cpu).Microseconds()) / 1e3 / float64(len(took))
	out.Time = spreadOf(took)
	return out, nil
}

func (t *together) print(w io.Writer, events int64) {
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\n%d USERS OPEN THE FIRST PAGE TOGETHER, OF %d EVENTS\tp50\tp95\tworst\t\n", t.Users, events)
	fmt.Fprintf(w, "ms\t%.0f\t%.0f\t%.0f\t\n", t.Time.P50, t.Time.P95, t.Time.Worst)
	fmt.Fprintf(w, "%.0f ms of CPU a page; answers by status: %v\t\t\t\t\n", t.CPU, t.Status)
}
