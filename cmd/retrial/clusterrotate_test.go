package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

// Which flags of cluster rotate go together, and what is said of those that do not.
func TestRotateFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		flags rotateFlags
		want  string // empty: they go together
	}{
		"a cluster's certificate":          {rotateFlags{}, ""},
		"finished":                         {rotateFlags{finish: true}, ""},
		"finished by force":                {rotateFlags{finish: true, force: true}, ""},
		"the earlier ones refused at once": {rotateFlags{revokeOld: true}, ""},
		"the authority":                    {rotateFlags{authority: true}, ""},
		"the authority, finished":          {rotateFlags{authority: true, finish: true, force: true}, ""},
		"the authority, given up":          {rotateFlags{authority: true, abort: true, force: true}, ""},
		"the server's certificate":         {rotateFlags{server: true}, ""},
		"two changes":                      {rotateFlags{authority: true, server: true}, "two changes"},
		"a second step of the server's":    {rotateFlags{server: true, finish: true}, "one step"},
		"the server's, given up":           {rotateFlags{server: true, abort: true}, "one step"},
		"a cluster's, given up":            {rotateFlags{abort: true}, "gives up a change of --authority"},
		"finished and given up":            {rotateFlags{authority: true, finish: true, abort: true}, "either --finish or --abort"},
		"finished, and revoked":            {rotateFlags{finish: true, revokeOld: true}, "--finish revokes"},
		"force without anything to force":  {rotateFlags{force: true}, "--force is for --finish and --abort"},
		"force of a server's certificate":  {rotateFlags{server: true, force: true}, "--force is for --finish and --abort"},
		"the authority's with an overlap of": {rotateFlags{authority: true, revokeOld: true},
			"--revoke-old is of one cluster's certificates"},
		"the server's with --revoke-old": {rotateFlags{server: true, revokeOld: true}, "--revoke-old is of one cluster's certificates"},
		"no time at all":                 {rotateFlags{finish: true, quiet: -1}, "--quiet must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.flags.check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v: %v, want %q", tc.flags, err, tc.want)
			}
		})
	}
}

// The steps of each change, by the command line: those that are due, and those that are not.
func TestRotateSteps(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	written := filepath.Join(t.TempDir(), "kubeconfig")
	for _, step := range []struct {
		args string
		code int
		want string // of what is said
	}{
		{"add prod", cli.ExitOK, "cluster prod may post to"},
		{"rotate", cli.ExitUsage, "NAME is missing"},
		{"rotate prod other", cli.ExitUsage, "unexpected argument"},
		{"rotate prod --authority", cli.ExitUsage, "unexpected argument"},
		{"rotate prod --server-certificate", cli.ExitUsage, "unexpected argument"},
		{"rotate prod --abort", cli.ExitUsage, "gives up a change of --authority"},
		{"rotate prod --finish --revoke-old", cli.ExitUsage, "--finish revokes"},
		{"rotate prod --finish --quiet -1m", cli.ExitUsage, "--quiet must not be negative"},
		{"rotate prod --force", cli.ExitUsage, "--force is for --finish and --abort"},
		{"rotate prod --output " + written, cli.ExitOK, "retrial cluster rotate prod --finish"},
		{"rotate prod --finish", cli.ExitError, "--force does it now"}, // nobody has used the new one
		{"rotate prod --finish --force", cli.ExitOK, "only its newest certificate is accepted now"},
		{"rotate prod --revoke-old --output " + written, cli.ExitOK, ""},
		{"rotate --server-certificate", cli.ExitOK, "the receiver's certificate is new"},
		{"rotate --server-certificate --finish", cli.ExitUsage, "one step"},
		{"rotate --authority --finish", cli.ExitError, "no change of authority is under way"},
		{"rotate --authority --abort", cli.ExitError, "no change of authority is under way"},
		{"rotate --authority", cli.ExitOK, "retrial cluster rotate --authority --finish"},
		{"rotate --authority", cli.ExitError, "a change of authority is under way"},
		{"rotate --authority --abort", cli.ExitOK, "given up"},
		{"rotate --authority", cli.ExitOK, "is trusted beside the old one"},
		{"rotate --authority --finish", cli.ExitError, "--force does it now"}, // prod has none of the new one's
		{"rotate prod --output " + written, cli.ExitOK, "stay accepted"},
		{"rotate --authority --abort", cli.ExitError, "--force does it now"},
		{"rotate --authority --finish --force", cli.ExitOK, "finished: the authority is the new one"},
	} {
		args := append([]string{"cluster"}, strings.Fields(step.args)...)
		code, _, said := commandLine(t, "", append(args, "--data-dir", data)...)
		if code != step.code || !strings.Contains(said, step.want) {
			t.Errorf("%s: code %d, want %d; said %q, want %q", step.args, code, step.code, said, step.want)
		}
	}
	if _, err := os.Stat(written); err != nil {
		t.Error(err)
	}
}
