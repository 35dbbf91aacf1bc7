package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built with",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(s.out, "retrial %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, d := range info.Deps {
					switch d.Path {
					case "github.com/segmentio/kafka-go", "github.com/ClickHouse/clickhouse-go/v2", "k8s.io/apiserver", "github.com/twmb/franz-go/pkg/kfake":
						fmt.Fprintf(s.out, "  %s %s\n", d.Path, d.Version)
					}
				}
			}
			return nil
		},
	}
}

// usage marks a wrong number of arguments as a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return exitCode{exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
		}
		return nil
	}
}
