package query

import (
	"io"

	"github.com/retrial-io/retrial/analysis/completeness"
	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/analysis/revert"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Records that answers consist of, under the names that printers use.
type (
	AuditEvent         = event.Event
	VerdictLine        = verdict.Line
	GrantLine          = verdict.GrantLine
	Finding            = detect.Finding
	CompletenessReport = completeness.Report
	PluginError        = completeness.PluginError // of an audit backend, in an apiserver's log
	Suggestion         = leastpriv.Suggestion
	SuggestionSize     = leastpriv.Size
	Recording          = leastpriv.Recording
	KeptBinding        = leastpriv.Keep
	RemovedBinding     = leastpriv.Remove
	RBACObject         = leastpriv.Object
	PolicyRevert       = revert.PolicyRevert
	NamedQuestion      = queries.Question // in SQL
)

// Constants of the records.
const (
	NotDecided = "none" // no decision is recorded, or replayed
	Allowed    = "allow"

	SuggestedGroup  = leastpriv.WhatGroup      // what a suggestion is for that is for a group
	BacktestDefault = leastpriv.BacktestNarrow // the form of suggestions unless another one is asked for
)

// Decode reads the request's event.
func (r *JudgedRequest) Decode() (*AuditEvent, error) { return event.Decode(r.Event) }

// ClassText returns what a class of verdicts means.
func ClassText(class string) string { return verdict.Explain(class) }

// NamedQuestions returns the questions in SQL that have names.
func NamedQuestions() []NamedQuestion { return queries.Questions() }

// Severities returns the severities of findings, the least first.
func Severities() []string { return detect.Severities() }

// ReadPluginErrors reads from a kube-apiserver's log which events its audit backends lost.
func ReadPluginErrors(log io.Reader) ([]PluginError, error) { return completeness.ReadLog(log) }
