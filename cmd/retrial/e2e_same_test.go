package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
)

// TestWebhookAndImportAreTheSame posts webhook bodies for one cluster and imports exactly
// their events into another: the rows are the same. Then everything comes again, in other
// batches, as an import, after a restart and after many other inserts: nothing in any
// table changes.
func TestWebhookAndImportAreTheSame(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	log := portion(t)
	file, state := writeLog(t, filepath.Join(in.dir, "audit.jsonl"), log), writeState(t, in.dir)

	s := in.serve(t)
	posted := s.addCluster(t, "posted")
	in.run(t, "import", "--cluster", "posted", "--state", state).ok(t)
	in.run(t, "import", "--cluster", "imported", "--state", state, file).ok(t)
	postAll(t, posted, batches(log, 1))
	s.drained(t)
	s.stop(t)

	at := func(name string) string { return filepath.Join(in.dir, name) }
	before := inspect(t, inspection{Data: in.data(),
		Queries: map[string]string{
			at("posted.events"): eventsOf("posted"), at("imported.events"): eventsOf("imported"),
			at("posted.verdicts"): verdictsOf("posted"), at("imported.verdicts"): verdictsOf("imported"),
			at("posted.usage"): usageOf("posted"), at("imported.usage"): usageOf("imported"),
			at("content"): contentOf(),
		},
		Events: map[string]string{at("posted.list"): "posted"},
	})
	for _, what := range []string{"events", "verdicts", "usage"} {
		sameLines(t, what+" of the posted cluster against the imported one", lines(t, at("posted."+what)), lines(t, at("imported."+what)))
	}
	sameEvents(t, in, "posted", log, lines(t, at("posted.list")))
	if before.Events != 2*int64(len(fingerprints(t, in, "posted", log))) || before.Volume != before.Events ||
		before.Usage != before.Judged || before.Grants != before.GrantRows {
		t.Errorf("totals do not add up: %+v", before)
	}
	if before.DeadLetters != 0 {
		t.Errorf("%d dead letters", before.DeadLetters)
	}
	content := lines(t, at("content"))

	again := func(how string, do func(*running, sender)) {
		t.Helper()
		s := in.serve(t, "--replay-hold", "0s")
		do(s, s.sender(t, filepath.Join(in.dir, "posted.kubeconfig")))
		s.drained(t)
		s.stop(t)
		after := inspect(t, inspection{Data: in.data(), Queries: map[string]string{at("content"): contentOf()}})
		if after != before {
			t.Errorf("%s: totals were\n%+v, are\n%+v", how, before, after)
		}
		sameLines(t, how, lines(t, at("content")), content)
	}
	again("posted again in other batches", func(s *running, to sender) { postAll(t, to, batches(log, 2)) })
	again("imported after it was posted", func(s *running, _ sender) { in.run(t, "import", "--cluster", "posted", file).ok(t) })

	// A thousand inserts later no deduplication token of the first deliveries is remembered.
	// Where that takes too long, fewer are, and fewer inserts make them forgotten.
	others := inspection{Data: in.data(), Inserts: 12, Window: 10, Queries: map[string]string{at("content"): contentOf()}}
	if long() {
		others.Inserts, others.Window = 1001, 0
	}
	before = inspect(t, others)
	content = lines(t, at("content"))
	again("posted again after many inserts", func(s *running, to sender) { postAll(t, to, batches(log, 3)) })
	again("imported again as another file after many inserts", func(s *running, _ sender) {
		in.run(t, "import", "--cluster", "imported",
			writeLog(t, at("rotated.jsonl"), append([][]byte{log[len(log)-1]}, log[:len(log)-1]...))).ok(t)
	})
}

// TestRecordedPosts posts the bodies an apiserver really sent.
func TestRecordedPosts(t *testing.T) {
	t.Parallel()
	bodies := recordedPosts(t)
	if bodies == nil {
		t.Skip("RETRIAL_CORPUS names no folder with webhook-posts.jsonl; TestWebhookAndImportAreTheSame builds such bodies")
	}
	in := newInstall(t)
	at := func(name string) string { return filepath.Join(in.dir, name) }
	var log [][]byte
	for _, body := range bodies {
		if err := event.DecodeList(bytes.Clone(body), func(item event.Item) error {
			log = append(log, event.AppendJSON(nil, item.Event))
			return item.Err
		}); err != nil {
			t.Fatal(err)
		}
	}
	s := in.serve(t)
	state := writeState(t, in.dir)
	to := s.addCluster(t, "posted")
	in.run(t, "import", "--cluster", "posted", "--state", state).ok(t)
	in.run(t, "import", "--cluster", "imported", "--state", state, writeLog(t, at("audit.jsonl"), log)).ok(t)
	postAll(t, to, bodies)
	s.drained(t)
	s.stop(t)
	inspect(t, inspection{Data: in.data(), Queries: map[string]string{
		at("posted.events"): eventsOf("posted"), at("imported.events"): eventsOf("imported"),
		at("posted.verdicts"): verdictsOf("posted"), at("imported.verdicts"): verdictsOf("imported"),
		at("posted.usage"): usageOf("posted"), at("imported.usage"): usageOf("imported"),
	}})
	for _, what := range []string{"events", "verdicts", "usage"} {
		sameLines(t, what, lines(t, at("posted."+what)), lines(t, at("imported."+what)))
	}
}
