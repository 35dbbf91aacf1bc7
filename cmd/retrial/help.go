package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/internal/config"
)

// showFlags leaves only the named ones of the configuration's flags in a command's help. The others are accepted all the same;
// docs/config.md and `retrial serve --help` list them.
func showFlags(set *pflag.FlagSet, names ...string) {
	cfg := config.Default()
	for _, f := range cfg.Fields() {
		if !slices.Contains(names, f.Flag) {
			set.Lookup(f.Flag).Hidden = true
		}
	}
}
