// Package completeness reports whether all audit events of a cluster arrived, which are missing, and why: it
// compares what each kube-apiserver counted with what is stored of it, and looks for other traces of what is
// missing.
//
//	readings of apiserver_audit_event_total ─┐                      ┌─ missing, at least and at most
//	events by their own time ────────────────┼─▶ sent.go ─▶ Gap ────┼─ cause.go: a batch that could not be
//	error counters, pauses of arrival ───────┘                      │  encoded, a full buffer, an outage, a stop
//	requests of which a stage is missing ─▶ pairs.go                └─ Problem: what it is, what to do
//	events an hour against their usual ───▶ volume.go
//	an apiserver's log, when it is at hand ▶ log.go: the events themselves
//
// A reading is bounded by the apiserver's own clock, which stamps the events as well: no clocks are compared.
// Events at the edges of a stretch make "at least" and "at most" differ; in the middle the count is exact.
package completeness
