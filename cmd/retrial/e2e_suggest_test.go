package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// TestSuggestFromTheStore makes every suggestion of the whole recording from the log, from
// the store and from a running server: they are the same to the byte, all proofs hold, and
// they hold together.
func TestSuggestFromTheStore(t *testing.T) {
	needWhole(t)
	t.Parallel()
	in := newInstall(t)
	state, log := writeState(t, in.dir), writeLog(t, filepath.Join(in.dir, "audit.jsonl"), recorded(t))
	in.run(t, "import", "--cluster", "sample", "--state", state, log).ok(t)

	all := []string{"suggest", "--all", "--include-system", "--include-unseen"}
	files := []string{"--state", state, "--events", log}
	everybody := in.run(t, slices.Concat(all, files, []string{"-o", "json"})...).ok(t)
	says(t, everybody.err, "every proof holds, also with all suggestions in force together")
	for name, args := range map[string][]string{
		"YAML": append(all, "-o", "yaml", "--force"),
		// Of a few subjects alone the store reads what concerns them.
		"two of Kubernetes and one never seen": {"suggest", "--subject", "system:kube-scheduler", "--subject",
			"system:kube-controller-manager", "--subject", "zed", "--include-system"},
	} {
		stored, read := in.run(t, args...).ok(t), in.run(t, slices.Concat(args, files)...).ok(t)
		if stored.out != read.out || len(stored.out) < 500 {
			t.Errorf("%s: from the store and from the log suggestions differ: %s", name, difference(stored.out, read.out))
		}
	}

	s := in.serve(t)
	asked := in.run(t, append(all, "-o", "json")...).ok(t)
	t.Log(asked.err)
	if asked.out != everybody.out {
		t.Errorf("from the server and from the log suggestions differ: %s", difference(asked.out, everybody.out))
	}
	sets := itemsOf[struct {
		Subject string
		Seen    bool
		Proof   struct {
			Holds                 bool
			Refused, NewlyAllowed int
		}
	}](t, asked.out)
	unseen := 0
	for _, one := range sets {
		if !one.Proof.Holds || one.Proof.Refused+one.Proof.NewlyAllowed > 0 {
			t.Errorf("%s: the proof does not hold: %+v", one.Subject, one.Proof)
		}
		if !one.Seen {
			unseen++
		}
	}
	if len(sets) < 100 || unseen == 0 {
		t.Errorf("%d suggestions, %d of them for subjects never seen", len(sets), unseen)
	}

	var page query.Doings
	s.get(t, "subject?cluster=sample&subject=ci-bot", &page)
	never := 0
	for _, r := range page.Rules {
		if r.Requests == 0 && r.Own {
			never++
		}
	}
	if page.Requests == 0 || len(page.Usage) == 0 || never == 0 || never == len(page.Rules) || !page.Known {
		t.Errorf("ci-bot: %d requests, %d uses, %d of %d rules never used", page.Requests, len(page.Usage), never, len(page.Rules))
	}

	in.run(t, "suggest", "--subject", "ci-bott").refused(t, cli.ExitNoMatch, `no request of "ci-bott" is recorded`, `did you mean "ci-bot"`)
	in.run(t, "suggest", "--subject", "ci-bot", "-o", "yaml").refused(t, cli.ExitError, "less than --min-window 7d", "--force")
	in.run(t, "suggest", "--from", "2030-01-01T00:00:00Z").refused(t, cli.ExitNoMatch, "no request of cluster", "in this range")
	in.run(t, "suggest", "--from", "tomorrow").refused(t, cli.ExitUsage, `invalid time "tomorrow"`)
	in.run(t, "suggest", "--subject", "system:kube-scheduler").refused(t, cli.ExitUsage, "--include-system")
	in.run(t, "suggest", "--cluster", "other").refused(t, cli.ExitNoMatch, "there is no cluster other", "sample")
	var log2 struct{ Asked []struct{ Question string } }
	s.get(t, "query-log?limit=500", &log2)
	found := false
	for _, a := range log2.Asked {
		found = found || a.Question == "suggest"
	}
	if !found {
		t.Errorf("no suggestion is in the access record: %+v", log2)
	}
	s.stop(t)
}

// TestSuggestWithoutState: of a cluster whose policy nobody told there is nothing to take away.
func TestSuggestWithoutState(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), recorded(t)[20_000:20_050])
	in.run(t, "import", "--cluster", "sample", log).ok(t)
	in.run(t, "suggest").refused(t, cli.ExitNoMatch, "nothing is known of the roles and bindings",
		"retrial import --cluster sample --state")
}
