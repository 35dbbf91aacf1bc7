// Package detect says what is odd in a stream of audit events and their verdicts. A rule is
// a YAML file with expressions in CEL; what it finds is a Finding.
//
//	rules/*.yaml ──Load──▶ Set ──New──▶ Detector ◀──Observe── (event, verdict), one a request
//	                        │               │
//	                        │               └──Flush──▶ []Finding          of a log
//	                        │
//	                        ├──NewTagger──▶ Tagger.Tag ──▶ marks, stored with the request
//	                        └──NewLive────▶ Live.Pass: marks that changed ─▶ Detector ─▶ findings,
//	                                        stored                         of what is stored
//
// There are three kinds of rules. An event rule judges one request; its hits on one subject
// fold into one finding an hour. A window rule counts the requests its expression selects
// in windows of event time. A first-seen rule reports a key that a cluster's history did
// not show before.
//
// A finding is a function of the requests in its window, not of their order, nor of when or
// how often they were looked at: its identifier is the hash of cluster, rule, group and
// window, and to save it again changes nothing.
//
// The package is pure: no I/O and no clock. All time is the events' own
// (requestReceivedTimestamp).
package detect
