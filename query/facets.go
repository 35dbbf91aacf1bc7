package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// FacetsAnswer says which values the requests of a range have, and how often. What has too many events is not counted in whole: each count
// says over what stretch it was made, the newest there is.
type FacetsAnswer struct {
	Cluster string `json:"cluster"`
	// Requests counts those that the filters select, in its stretch.
	Requests int64 `json:"requests"`
	Counted
	Facets []Facet `json:"facets"` // as asked for
}

// Counted says over what a count was made.
type Counted struct {
	// CountedFrom and CountedTo bound it; null when nothing is stored of the range. Ranges with too many events that are counted in whole
	// all the same are counted in whole minutes.
	CountedFrom *time.Time `json:"countedFrom"`
	CountedTo   *time.Time `json:"countedTo"` // exclusive
	// Whole is false when the range has older requests, which were not counted: ask for a shorter range.
	Whole bool `json:"whole"`
}

// Facet counts requests by one key.
type Facet struct {
	Key    string       `json:"key"`    // as of where
	Values []FacetValue `json:"values"` // most requests first
	More   bool         `json:"more"`   // there are values with fewer requests
	Counted
}

// FacetValue is a value and how many requests have it. A request counts for each of its groups, addresses and rules.
type FacetValue struct {
	Value    string `json:"value"` // "" for none
	Requests int64  `json:"requests"`
}

// FacetsRequest asks which values the requests that filters select have, by keys, most requests first. Filters are those of events. At most
// the newest two million events of a range are counted, unless keys and filters are about decision, replayed, outcome and class alone.
type FacetsRequest struct {
	Asks[FacetsAnswer] `question:"facets"`
	Filters
	Keys  []string `json:"keys" list:"csv" help:"keys to count by, as of where but for path, auditID and credential (default: subject, verb, resource, namespace, decision, outcome, code and userAgent)"`
	Limit int      `json:"limit" default:"10" min:"1" max:"100" help:"most values of a key"`
}

// usualFacets are the keys that requests are counted by when none are named.
var usualFacets = []string{"subject", "verb", "resource", "namespace", "decision", "outcome", "code", "userAgent"}

func (r FacetsRequest) check() error {
	_, counted := queries.Columns()
	for _, k := range r.Keys {
		if err := oneOfColumns("keys", k, counted); err != nil {
			return err
		}
	}
	return r.Filters.check()
}

// Facets answers which values requests have.
func (a *Service) Facets(ctx context.Context, tables Tables, q FacetsRequest) (out FacetsAnswer, err error) {
	f, err := q.filter()
	if err == nil {
		err = a.marked(&f, q.Keys...)
	}
	if err != nil {
		return out, err
	}
	keys := q.Keys
	if len(keys) == 0 {
		keys = usualFacets
	}
	total, list, err := tables.Facets(ctx, f, keys, q.Limit)
	if err != nil {
		return out, err
	}
	out = FacetsAnswer{Cluster: q.Cluster, Counted: countedOf(total.Stretch), Facets: []Facet{}}
	for _, v := range total.Values {
		out.Requests += v.Requests
	}
	for i := range list {
		facet := Facet{Key: list[i].Column, Values: []FacetValue{}, More: list[i].More, Counted: countedOf(list[i].Stretch)}
		for _, v := range list[i].Values {
			facet.Values = append(facet.Values, FacetValue(v))
		}
		out.Facets = append(out.Facets, facet)
	}
	return out, nil
}

func countedOf(s queries.Stretch) Counted {
	return Counted{CountedFrom: momentOf(s.From), CountedTo: momentOf(s.To), Whole: s.Whole}
}

// momentOf returns a time as answers have it, nil for none.
func momentOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// HistogramAnswer counts requests step by step.
type HistogramAnswer struct {
	Cluster string `json:"cluster"`
	Counted
	StepSeconds int64  `json:"stepSeconds"` // length of a step, 0 when nothing is stored of the range
	Split       string `json:"split"`       // key the counts are split by, "" for none
	// Values are those of the key with most requests, in the order of each step's counts.
	Values []string        `json:"values"`
	Steps  []HistogramStep `json:"steps"` // oldest first, those without requests too; 200 at most
}

// HistogramStep counts the requests of one step.
type HistogramStep struct {
	Time   time.Time `json:"t"`      // begin
	Counts []int64   `json:"counts"` // of each of the values
	Others int64     `json:"others"` // of all other values; without a split, of all
}

// HistogramRequest asks how many requests that filters select there were, step by step, in all or by the most frequent values of a key.
// Filters are those of events. What is counted of a range is as of facets.
type HistogramRequest struct {
	Asks[HistogramAnswer] `question:"histogram"`
	Filters
	Split string `json:"split" help:"key to split the counts by, as of facets"`
	Top   int    `json:"top" default:"8" min:"1" max:"20" help:"values of the key that are counted by themselves"`
	Steps int    `json:"steps" default:"120" min:"2" max:"200" help:"most steps"`
}

func (r HistogramRequest) check() error {
	if _, counted := queries.Columns(); r.Split != "" {
		if err := oneOfColumns("split", r.Split, counted); err != nil {
			return err
		}
	}
	return r.Filters.check()
}

// Histogram answers how many requests there were, step by step.
func (a *Service) Histogram(ctx context.Context, tables Tables, q HistogramRequest) (out HistogramAnswer, err error) {
	f, err := q.filter()
	if err == nil {
		err = a.marked(&f, q.Split)
	}
	if err != nil {
		return out, err
	}
	h, err := tables.Histogram(ctx, f, q.Split, q.Top, q.Steps)
	if err != nil {
		return out, err
	}
	out = HistogramAnswer{Cluster: q.Cluster, Counted: countedOf(h.Stretch), StepSeconds: int64(h.Step / time.Second), Split: q.Split,
		Values: append([]string{}, h.Values...), Steps: []HistogramStep{}}
	for i, counts := range h.Counts {
		last := len(counts) - 1
		out.Steps = append(out.Steps, HistogramStep{h.Begin.Add(time.Duration(i) * h.Step).UTC(), counts[:last:last], counts[last]})
	}
	return out, nil
}
