package event

import (
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// SightingEvery is the resolution of sightings: in a span of this length, from a multiple on, one of a version is as good as all.
const SightingEvery = 10 * time.Minute

// userApiserver is the user of an apiserver's requests to itself.
const userApiserver = kubenames.APIServer

// Sighting returns the version of the apiserver that took the request, as "1.36.3", and its minor
// version, when the request is one of the apiserver's own: made as system:apiserver over the
// loopback interface, impersonating nobody, with a user agent that names a version of
// Kubernetes, as client-go builds it (rest.DefaultKubernetesUserAgent).
func Sighting(e *Event) (version string, minor int, ok bool) {
	if e.User.Username != userApiserver || e.ImpersonatedUser != nil || len(e.SourceIPs) != 1 {
		return "", 0, false
	}
	if at, err := netip.ParseAddr(e.SourceIPs[0]); err != nil || !at.IsLoopback() {
		return "", 0, false
	}
	_, rest, _ := strings.Cut(e.UserAgent, "/v")
	version, rest, _ = strings.Cut(rest, " ")
	if !strings.Contains(rest, " kubernetes/") {
		return "", 0, false
	}
	if i := strings.IndexAny(version, "+-"); i >= 0 {
		version = version[:i]
	}
	major, text, _ := strings.Cut(version, ".")
	text, _, _ = strings.Cut(text, ".")
	minor, err := strconv.Atoi(text)
	if major != "1" || err != nil || minor < 1 || minor > 999 || len(version) > 32 {
		return "", 0, false
	}
	return version, minor, true
}

// Sightings records which sightings have been passed on in the last span of each apiserver's versions. Several goroutines may use it.
type Sightings struct {
	mu   sync.Mutex
	last map[sightingKey]int64
}

type sightingKey struct{ cluster, server, version string }

// maxSightings bounds the versions that are remembered; above it all are forgotten.
const maxSightings = 4096

// Fresh reports whether the event, of an apiserver of a cluster, is a sighting in a span in which
// none was passed on yet.
func (s *Sightings) Fresh(cluster, server string, e *Event) bool {
	version, _, ok := Sighting(e)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, seen := s.last[sightingKey{cluster, server, version}]
	return !seen || last != span(e)
}

// Passed records that a sighting was passed on, so that the rest of its span is not.
func (s *Sightings) Passed(cluster, server string, e *Event) {
	version, _, ok := Sighting(e)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || len(s.last) >= maxSightings {
		s.last = map[sightingKey]int64{}
	}
	s.last[sightingKey{strings.Clone(cluster), strings.Clone(server), strings.Clone(version)}] = span(e)
}

// span returns the number of the span an event belongs to.
func span(e *Event) int64 {
	return e.RequestReceivedTimestamp.Unix() / int64(SightingEvery/time.Second)
}
