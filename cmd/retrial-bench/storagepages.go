package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// How often every question of a page is asked: a slow one until pageLong has passed, but pageLeast times in any case.
const (
	pageTimes, pageLeast = 20, 3
	pageLong             = 6 * time.Second
)

// pageBudget is what a question of a page may take, as 95th percentile.
const pageBudget = 300.0

// pageCost is what one question of a page takes, its answer written as JSON.
type pageCost struct {
	Page   string `json:"page"`
	Range  string `json:"range,omitempty"` // that it is about
	Asks   string `json:"asks"`
	Asked  int    `json:"asked"`
	Time   spread `json:"milliseconds"`
	CPU    spread `json:"cpu_milliseconds"`
	Rows   int64  `json:"rows_read"`    // by the last
	Bytes  int64  `json:"bytes_read"`   // by the last
	Answer int    `json:"answer_bytes"` // of the last
}

// wholePage is what a page takes whose questions are asked all at once, as the page does.
type wholePage struct {
	Page   string         `json:"page"`
	Range  string         `json:"range,omitempty"`
	Asks   int            `json:"asks"` // questions
	Time   spread         `json:"milliseconds"`
	Status map[string]int `json:"answers_by_status"`
}

// pagesCost is what all pages take.
type pagesCost struct {
	Events    int64       `json:"events"`
	Questions []pageCost  `json:"questions"`
	Pages     []wholePage `json:"pages"`
}

// ruled is a store with the rules of detections.
type ruled struct {
	*storage.Store
	rules []detect.Rule
}

func (r ruled) DetectionRules() []detect.Rule { return r.rules }

// oneState is a replay that has caught up, of one cluster.
type oneState struct{ state *state.State }

func (oneState) Lag() verdict.Backlog { return verdict.Backlog{} }

func (oneState) WaitDrained(context.Context) error { return nil }

func (s oneState) State(context.Context, string, time.Time) (*state.State, error) {
	return s.state, nil
}

func (s oneState) Clusters(context.Context) ([]string, error) {
	return []string{s.state.Cluster()}, nil
}

// askPages asks every question of every page: alone, and all of a page together.
func (b *storageBench) askPages(ctx context.Context) (*pagesCost, error) {
	facts, err := b.pageFacts(ctx)
	if err != nil {
		return nil, err
	}
	service := &query.Service{Store: ruled{b.store, facts.rules}, Replay: oneState{facts.state},
		Now: func() time.Time { return facts.last }}
	questions := service.Questions()
	out := &pagesCost{Events: facts.events}
	pages := pagesOf(facts)
	for _, p := range pages {
		for _, long := range p.ranges() {
			for _, q := range p.asks {
				if q.ranged == nil && long != p.ranges()[0] {
					continue
				}
				i := slices.IndexFunc(questions, func(x query.Question) bool { return x.Name == q.name })
				cost, err := b.askPage(ctx, &questions[i], &q, facts, long)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", q.name, p.name, err)
				}
				cost.Page = p.name
				out.Questions = append(out.Questions, cost)
				fmt.Fprintf(b.log, "%s\t%s\t%s\t%.0f ms, 95th percentile %.0f, %.0f of CPU\n", cost.Page, cost.Range, cost.Asks,
					cost.Time.P50, cost.Time.P95, cost.CPU.P50)
			}
		}
	}
	door := api.New(questions, nil, zap.NewNop(), 10*api.LongestQuery)
	for _, p := range pages {
		for _, long := range p.ranges() {
			out.Pages = append(out.Pages, openPage(ctx, door, &p, facts, long))
		}
	}
	return out, nil
}

// askPage asks one question several times, of ranges that end at different times: no answer is that of the time before.
func (b *storageBench) askPage(ctx context.Context, q *query.Question, asks *pageQuestion, facts *pageFacts, long pageRange) (pageCost,
	error) {
	cost := pageCost{Asks: asks.label(), Range: long.name}
	if asks.ranged == nil {
		cost.Range = ""
	}
	var took, used []float64
	for began := time.Now(); len(took) < pageTimes && (len(took) < pageLeast || time.Since(began) < pageLong); {
		request := q.NewRequest()
		if _, err := params.Read(request, asks.values(facts, long, len(took))); err != nil {
			return cost, err
		}
		var body bytes.Buffer
		one, err := askOnce(ctx, b.engine, func() error {
			answer, err := q.Ask(query.WithSink(ctx, &discarded{&body}), request)
			if err == nil {
				err = json.NewEncoder(&body).Encode(answer)
			}
			return err
		})
		if err != nil {
			return cost, err
		}
		took, used = append(took, one.Seconds*1e3), append(used, one.CPU*1e3)
		cost.Rows, cost.Bytes, cost.Answer = one.Rows, one.Bytes, body.Len()
	}
	cost.Asked, cost.Time, cost.CPU = len(took), spreadOf(took), spreadOf(used)
	return cost, nil
}

// discarded takes a long list as the API writes it.
type discarded struct{ to *bytes.Buffer }

func (d *discarded) Begin(any) error { return nil }

func (d *discarded) Add(item any) error { return json.NewEncoder(d.to).Encode(item) }

// pageAtOnce is how many questions a browser asks of one server at a time, pageRounds how often a page is opened.
const pageAtOnce, pageRounds = 6, 8

// openPage asks all questions of a page at once, through the API.
func openPage(ctx context.Context, door http.Handler, p *page, facts *pageFacts, long pageRange) wholePage {
	out := wholePage{Page: p.name, Range: long.name, Asks: len(p.asks), Status: map[string]int{}}
	var mu sync.Mutex
	var took []float64
	opened := time.Now()
	for round := 0; round < pageRounds && (round < pageLeast || time.Since(opened) < 2*pageLong); round++ {
		began := time.Now()
		places := make(chan struct{}, pageAtOnce)
		var all sync.WaitGroup
		for _, q := range p.asks {
			if q.late {
				continue
			}
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				status := askDoor(ctx, door, 0, q.name, q.values(facts, long, round+pageTimes))
				mu.Lock()
				out.Status[status]++
				mu.Unlock()
			})
		}
		all.Wait()
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
	}
	out.Time = spreadOf(took)
	return out
}

func (c *pagesCost) print(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "\nQUESTIONS OF PAGES, OF %d EVENTS\trange\tms: p50\tp95\tworst\tCPU ms: p50\tp95\trows read\tMB read\t"+
		"KB of answer\t\n", c.Events)
	for i := range c.Questions {
		q := &c.Questions[i]
		over := ""
		if q.Time.P95 > pageBudget {
			over = "over 300 ms"
		}
		fmt.Fprintf(w, "%s: %s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%.1f\t%d\t%s\n", q.Page, q.Asks, q.Range, q.Time.P50, q.Time.P95,
			q.Time.Worst, q.CPU.P50, q.CPU.P95, q.Rows, float64(q.Bytes)/1e6, q.Answer/1000, over)
	}
	fmt.Fprint(w, "\nALL QUESTIONS OF A PAGE AT ONCE\trange\tms: p50\tp95\tworst\tquestions\tanswers\t\n")
	for i := range c.Pages {
		p := &c.Pages[i]
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%d\t%v\t\n", p.Page, p.Range, p.Time.P50, p.Time.P95, p.Time.Worst, p.Asks, p.Status)
	}
}

// pageRange is a stretch of time that pages are opened with.
type pageRange struct {
	name string
	long time.Duration
}

// pageRanges are those that people choose; the first stands for "since my last visit".
var pageRanges = []pageRange{ //nolint:gochecknoglobals // constant table
	{"1 hour", time.Hour}, {"24 hours", 24 * time.Hour}, {"7 days", 7 * 24 * time.Hour},
}

// page is a page and what it asks.
type page struct {
	name string
	asks []pageQuestion
}

// ranges returns the ranges a page is asked for: one, where no question has any.
func (p *page) ranges() []pageRange {
	if slices.ContainsFunc(p.asks, func(q pageQuestion) bool { return q.ranged != nil }) {
		return pageRanges
	}
	return pageRanges[:1]
}

// pageQuestion is a question of a page, as dashboards/web/src/pages asks it.
type pageQuestion struct {
	name string
	note string // what tells it from others of the name
	with []string
	// ranged names the parameters that begin and end the range, "" for one that is not given; nil: it has no range.
	ranged []string
	// varied has values of a parameter that are asked about in turn.
	varied map[string][]string
	late   bool // the page shows everything else before its answer
}

func (q *pageQuestion) label() string {
	if q.note == "" {
		return q.name
	}
	return q.name + " (" + q.note + ")"
}

// values returns the parameters of the nth time: every time the newest event is another.
func (q *pageQuestion) values(facts *pageFacts, long pageRange, n int) url.Values {
	out := url.Values{}
	if !slices.Contains([]string{"clusters", "status", "classes"}, q.name) {
		out.Set("cluster", benchCluster)
	}
	for i := 0; i < len(q.with); i += 2 {
		out.Set(q.with[i], q.with[i+1])
	}
	for name, list := range q.varied {
		out.Set(name, list[n%len(list)])
	}
	to := facts.last.Add(-time.Duration(n) * 7 * time.Second)
	from := to.Add(-long.long)
	if from.Before(facts.first) {
		from = facts.first
	}
	if len(q.ranged) > 0 {
		if q.ranged[0] != "" {
			out.Set(q.ranged[0], from.Format(time.RFC3339))
		}
		if q.ranged[1] != "" {
			out.Set(q.ranged[1], to.Format(time.RFC3339))
		}
	}
	if q.name == "ask" {
		values, _ := json.Marshal(map[string]string{"from": from.Format(time.RFC3339), "to": to.Format(time.RFC3339), "limit": "1000000"})
		out.Set("values", string(values)) // texts always are JSON
	}
	return out
}
