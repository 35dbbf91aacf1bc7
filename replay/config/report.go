package config

import (
	"fmt"
	"slices"
	"time"
)

// Report is how a folder was understood: for people, in the order in which it was read.
type Report struct {
	Versions []*Reading `json:"versions"`
}

// Reading is how one configuration was understood.
type Reading struct {
	// From is since when it is in force, zero for always.
	From time.Time `json:"from,omitzero"`
	// Folder is its path in the folder read, "." for that one.
	Folder string `json:"folder"`
	// Server is the name of a single apiserver, "" for all kube-apiservers without a
	// configuration of their own.
	Server string `json:"server,omitempty"`
	// Aggregated: the server is an aggregated API server.
	Aggregated bool `json:"aggregated,omitempty"`
	// Version is "1.36", "" if nothing states it.
	Version string `json:"kubernetesVersion,omitempty"`
	Digest  string `json:"digest"`
	// Authenticators and Authorizers are those it runs, in the order they are asked.
	Authenticators []Note `json:"authenticators"`
	Authorizers    []Note `json:"authorizers"`
	// Understood are the files and flags that are used, Ignored those that decide neither
	// identities nor what is allowed, with the reason.
	Understood []Note `json:"understood"`
	Ignored    []Note `json:"ignored,omitempty"`
	// Missing are files and flags that were not given, with what remains unknown without
	// them: the ones to add.
	Missing []Note `json:"missing,omitempty"`
	// NotEvaluable is what stays open although it was understood, since no log shows it.
	NotEvaluable []Note `json:"notEvaluable,omitempty"`
	// Warnings are likely mistakes, and settings that weaken the cluster.
	Warnings []string `json:"warnings,omitempty"`
}

// Note is one line of a report.
type Note struct {
	Subject string `json:"subject"` // a file, a flag or a part, never a credential
	Text    string `json:"text"`
}

// Complete reports whether nothing is missing from any version.
func (r *Report) Complete() bool {
	return r != nil && !slices.ContainsFunc(r.Versions, func(v *Reading) bool { return len(v.Missing) > 0 })
}

func (v *Reading) understood(subject, format string, args ...any) {
	v.Understood = append(v.Understood, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) open(subject, format string, args ...any) {
	v.NotEvaluable = append(v.NotEvaluable, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) missing(subject, format string, args ...any) {
	v.Missing = append(v.Missing, Note{subject, fmt.Sprintf(format, args...)})
}

func (v *Reading) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}
