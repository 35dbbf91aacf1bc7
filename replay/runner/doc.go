// Package runner is the loop that turns recorded requests into stored verdicts: fetch,
// hold, replay, write, commit, for every partition of audit.events this process owns, and
// the corrections that follow when policy becomes known late.
//
// Door: [New], then [Runner.Run], which blocks. Product: rows in the event store.
//
// Guarantees, each shown by the simulation in this package:
//
//   - An acknowledged record is stored, and visible once, whatever crashes where: the range
//     about to be written stands in the commit metadata before the write, the write carries
//     a token made of that range, and whoever comes next settles the range before anything
//     else.
//   - in = out + dead-lettered + duplicates.
//   - Whatever order policy and events arrive in, the verdicts that stand are the ones a
//     replay from scratch with all the policy would reach.
//
// Several processes may run it in one consumer group: each keeps the state of all clusters
// (the policy topic is read by everybody), judges and corrects only its own partitions, and
// [Config.OwnsPolicy] says which of them writes the policy table. Writing it twice is
// harmless, since saving is idempotent.
//
// Time comes from package time; the tests run in testing/synctest bubbles, which is where
// the clock is injected.
package runner
