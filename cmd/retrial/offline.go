package main

import (
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
)

// offlineLog is what a command that asks the store is given to look at a log instead.
type offlineLog struct {
	states, events []string
	fromEmpty      bool
}

func (l *offlineLog) bind(c *cobra.Command) {
	c.Flags().StringSliceVar(&l.events, "events", nil, "look at this audit log instead, - for standard input, NAME=FILE for that of an aggregated API server; may be repeated")
	c.Flags().StringSliceVar(&l.states, "state", nil, "with --events: state file, or folder of state files that together are one listing; may be repeated")
	c.Flags().BoolVar(&l.fromEmpty, "from-empty", false, "with --events: the log begins with the cluster's first start, there was nothing before it")
}

// named tells whether a log is named; flags that are about one are an error without it.
func (l *offlineLog) named(c *cobra.Command) (bool, error) {
	if len(l.events) == 0 && (len(l.states) > 0 || l.fromEmpty) {
		return false, cli.UsageError(c, "--state and --from-empty are about a log, and none is named: add --events")
	}
	return len(l.events) > 0, nil
}
