package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

// roomRules assign processor time to rooms by function: the first frame from the leaf on that
// matches a rule decides. Longer prefixes first.
var roomRules = []struct{ prefix, room string }{
	{"crypto/", "tls"},
	{"github.com/twmb/franz-go/", "kafka broker"},
	{"github.com/segmentio/kafka-go", "ingest/stream"},
	{"github.com/ClickHouse/", "storage"},
	{modulePath + "analysis", "detect"},
	{modulePath + "ingest/event", "ingest/event"},
	{modulePath + "ingest/webhook", "ingest/webhook"},
	{modulePath + "ingest/embedded", "kafka broker"},
	{modulePath + "ingest/stream", "ingest/stream"},
	{modulePath + "rbacindex", "rbacindex"},
	{modulePath + "replay/runner", "replay/runner"},
	{modulePath + "replay/state", "replay/state"},
	{modulePath + "replay", "replay"},
	{modulePath + "storage/embedded", "engine"},
	{modulePath + "storage", "storage"},
	{"net/http", "http"},
	{"golang.org/x/net/http2", "http"},
	{"runtime.gcBgMarkWorker", "garbage collection"},
	{"runtime.bgsweep", "garbage collection"},
	{"runtime.bgscavenge", "garbage collection"},
	{"runtime._ExternalCode", "engine"}, // shared libraries, of which there is one
	{"runtime.mcall", "scheduler"},
	{"runtime.mstart", "scheduler"},
}

const modulePath = "github.com/retrial-io/retrial/"

// rooms attributes the profile's processor time to rooms, in µs per event. The embedded
// store's own threads are not in a Go profile: they are what the operating system counted
// beyond it, and land in "engine".
func rooms(file string, total, events float64) (map[string]float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("profile of the server: %w", err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("profile of the server: %w", err)
	}
	out := map[string]float64{}
	var profiled float64
	for _, s := range p.Sample {
		us := float64(s.Value[len(s.Value)-1]) / 1000 / events
		out[roomOf(s)] += us
		profiled += us
	}
	if rest := total - profiled; rest > 0 {
		out["engine"] += rest
	}
	return out, nil
}

func roomOf(s *profile.Sample) string {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			for _, r := range roomRules {
				if strings.HasPrefix(line.Function.Name, r.prefix) {
					return r.room
				}
			}
		}
	}
	return "other"
}

// roomNames sorts rooms by their share.
func roomNames(rooms map[string]float64) []string {
	names := make([]string, 0, len(rooms))
	for n := range rooms {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool { return rooms[names[i]] > rooms[names[j]] })
	return names
}
