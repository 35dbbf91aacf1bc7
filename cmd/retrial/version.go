package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/version"
)

func newVersion(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built with",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(s.Out, "retrial %s %s %s/%s\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, d := range info.Deps {
					switch d.Path {
					case "github.com/segmentio/kafka-go", "github.com/ClickHouse/clickhouse-go/v2", "k8s.io/apiserver",
						"github.com/twmb/franz-go/pkg/kfake":
						fmt.Fprintf(s.Out, "  %s %s\n", d.Path, d.Version)
					}
				}
			}
			return nil
		},
	}
}
