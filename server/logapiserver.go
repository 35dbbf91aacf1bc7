package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/safe"
	apiserver "github.com/retrial-io/retrial/replay/config"
)

// apiserver reads the configuration of the log's apiserver: DIR, or the entry NAME=DIR of its
// cluster. nil: none was given.
func (l Log) apiserver() (func(cluster, server string) *apiserver.History, error) {
	cluster := l.name()
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--apiserver-config "+format, args...))
	}
	dir, named := "", []string(nil)
	for _, entry := range l.Apiservers {
		name, folder, ok := strings.Cut(entry, "=")
		if _, err := os.Stat(entry); err == nil || !ok {
			name, folder = cluster, entry
		}
		switch {
		case name != cluster:
			named = append(named, name)
		case dir != "":
			return nil, usage("names cluster %s twice; versions of one cluster lie in one folder", cluster)
		default:
			dir = folder
		}
	}
	if dir == "" {
		if len(named) > 0 {
			return nil, usage("is about %s, and the log is of %s: say which by --cluster", strings.Join(named, ", "), cluster)
		}
		return nil, nil
	}
	h, report, err := readApiserver(dir)
	if err != nil {
		return nil, usage("%w", err)
	}
	if !report.Complete() {
		fmt.Fprintf(l.Streams.Err, "hint: parts of the apiserver's configuration are missing; retrial config check %s lists them\n", safe.Text(filepath.Clean(dir)))
	}
	for _, v := range report.Versions {
		if i := slices.IndexFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "keeps what it had") }); i >= 0 {
			fmt.Fprintf(l.Streams.Err, "hint: %s: %s\n", safe.Text(filepath.Join(dir, v.Folder)), safe.Text(v.Warnings[i]))
		}
	}
	return func(_, server string) *apiserver.History { return h.Of(server) }, nil
}
