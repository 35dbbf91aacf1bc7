package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Release is a minor version an apiserver was seen with, 36 for 1.36, and the first and the last time it was, to ten minutes.
type Release struct {
	Minor       int
	First, Last time.Time
}

// How long before and after its sightings an apiserver is assumed to have had a version.
const (
	releaseBefore = time.Hour           // while no other was seen before it
	releaseAround = event.SightingEvery // else, and behind the last time, when another was seen later
)

// releases has the versions of one apiserver, by minor version: few.
type releases []release

type release struct {
	minor       int
	first, last int64
}

// takeSighting records that an apiserver was seen with a version.
func (s *State) takeSighting(o *observe.Observation, at span) []Effect {
	var seen observe.Sighted
	if json.Unmarshal(o.Object, &seen) != nil || seen.Minor < 1 || !strings.HasPrefix(o.Name, "kube-apiserver") {
		return nil
	}
	was := s.apiservers()[o.Name]
	is := slices.Clone(was)
	i, found := slices.BinarySearchFunc(is, seen.Minor, func(r release, minor int) int { return r.minor - minor })
	if found {
		is[i].first, is[i].last = min(is[i].first, at.nb), max(is[i].last, at.na)
	} else {
		is = slices.Insert(is, i, release{seen.Minor, at.nb, at.na})
	}
	if slices.Equal(was, is) {
		return nil
	}
	all := maps.Clone(s.apiservers())
	if all == nil {
		all = map[string]releases{}
	}
	all[strings.Clone(o.Name)] = is
	s.seen.Store(&all)
	return was.effect(o.Name, is)
}

// effect describes where the answers of two lists of versions differ.
func (r releases) effect(name string, is releases) []Effect {
	var points []int64
	for _, list := range [...]releases{r, is} {
		for _, v := range list {
			points = append(points, v.first-int64(releaseBefore), v.first-int64(releaseAround), v.first, v.last,
				v.last+int64(releaseAround))
		}
	}
	slices.Sort(points)
	points = slices.Compact(points)
	first, last := -1, -1
	for i, t := range points { // the answers are the same between two points
		if !slices.Equal(r.at(t, nil), is.at(t, nil)) || !slices.Equal(r.at(t+1, nil), is.at(t+1, nil)) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return nil
	}
	e := Effect{Resource: observe.Apiservers, Name: name, From: instant.Time(points[first]),
		subjects: Subjects{All: true, AllNamespaces: true}}
	if last+1 < len(points) {
		e.To = instant.Time(points[last+1])
	}
	return []Effect{e}
}

func (s *State) apiservers() map[string]releases {
	if m := s.seen.Load(); m != nil {
		return *m
	}
	return nil
}

// Releases appends to dst the minor versions an apiserver may have had at a moment, the most likely first; none if the log does not say.
// server is as events carry it. An apiserver that was never seen gets the versions of all that were, as its events may be merged with
// theirs.
func (s *State) Releases(server string, at time.Time, dst []int) []int {
	all := s.apiservers()
	if len(all) == 0 {
		return dst
	}
	t := instant.Of(at)
	if own := all[observe.ServerName(server)]; len(own) > 0 {
		return own.at(t, dst)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, minor := range all[name].at(t, nil) {
			if !slices.Contains(dst, minor) {
				dst = append(dst, minor)
			}
		}
	}
	return dst
}

// at appends the versions in force at a moment: those seen around it, or the last seen before.
func (r releases) at(t int64, dst []int) []int {
	if len(r) == 1 {
		if t >= r[0].first-int64(releaseBefore) {
			dst = append(dst, r[0].minor)
		}
		return dst
	}
	from, latest := len(dst), -1
	for i := range r {
		before := int64(releaseAround)
		if !slices.ContainsFunc(r, func(o release) bool { return o.first < r[i].first }) {
			before = int64(releaseBefore)
		}
		if t < r[i].first-before {
			continue
		}
		if latest < 0 || r[i].last > r[latest].last {
			latest = i
		}
		switch {
		case t > r[i].last+int64(releaseAround):
		case t >= r[i].first && t <= r[i].last: // it was seen before and after
			dst = slices.Insert(dst, from, r[i].minor)
		default:
			dst = append(dst, r[i].minor)
		}
	}
	if len(dst) == from && latest >= 0 {
		dst = append(dst, r[latest].minor)
	}
	return dst
}

// Servers returns the apiservers whose versions were seen, as events carry their names, each with
// its versions in the order in which they were first seen.
func (s *State) Servers() map[string][]Release {
	out := map[string][]Release{}
	for name, list := range s.apiservers() {
		_, server, _ := strings.Cut(name, "/")
		for _, r := range list {
			out[server] = append(out[server], Release{r.minor, instant.Time(r.first), instant.Time(r.last)})
		}
		slices.SortFunc(out[server], func(a, b Release) int { return a.First.Compare(b.First) })
	}
	return out
}

// String returns the minor version as people write it: "1.36".
func (r Release) String() string { return fmt.Sprintf("1.%d", r.Minor) }
