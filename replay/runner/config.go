package runner

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Config bounds and paces the loop. The zero value is usable: every zero field takes the
// default its comment names.
type Config struct {
	// Hold is how long after a record was appended the policy reader must have looked at the
	// policy topic before the record is judged; default 2 s, negative means none. A longer
	// hold saves corrections, a shorter one saves latency; neither changes what stands in
	// the end.
	Hold time.Duration
	// HoldLimit bounds the wait for a policy reader that does not get on (its topic or the
	// policy table is unavailable): after it the record is judged with what is known and
	// corrected later. Default 30 s.
	HoldLimit time.Duration
	// Lag widens the time of a policy change on both sides when the rows it may affect are
	// looked up: the apiserver's cache lag and the ten seconds for which it goes on taking
	// a token or an impersonation it has just verified. It must not be less than what the
	// engine allows for. Default 15 s.
	Lag time.Duration
	// LongestRequest is how long before a policy change a request may have been received and
	// still have been under way: the slack on the early side of the same lookup. Default
	// 10 min, the longest watch an apiserver grants by default.
	LongestRequest time.Duration

	// BatchRecords and BatchBytes bound one block; default 50,000 records and 64 MiB
	// (docs/adr/0070). Blocks are that large only while more waits than was judged.
	BatchRecords int
	BatchBytes   int
	// Linger bounds how long a block waits for its turn once its first record may be judged;
	// default 2 s, negative means not at all. Inserts take about a hundredth of one processor;
	// where they are cheap, or the last one was long ago, turns come sooner. A partition with a
	// backlog does not wait, and nothing does that CatchUp or WaitDrained wait for. It is also how
	// long policy may wait in its topic while no block needs it.
	Linger time.Duration
	// InFlightBytes bounds the record bytes of all partitions between fetch and commit, and
	// with it how many partitions work at once; default 2 blocks. The heap holds a small
	// multiple of it.
	InFlightBytes int64
	// Parallel is the number of goroutines that replay one block; default GOMAXPROCS.
	Parallel int
	// CorrectionRows bounds the rows of one step of a correction; default 10,000.
	CorrectionRows int
	// CorrectionLog is how many policy changes are remembered one by one for partitions that
	// have not been corrected for them yet; a partition further behind is re-judged whole.
	// Default 65,536.
	CorrectionLog int

	// RejudgePoll is how often the store is asked for requests to judge again that other
	// processes took in; default 15 s.
	RejudgePoll time.Duration

	// RetryMin and RetryMax bound the pause between attempts at an operation that failed;
	// default 100 ms and 10 s, doubling, with jitter.
	RetryMin, RetryMax time.Duration

	// Tagger notes which detection rules select a request; nil: no row gets marks.
	Tagger Tagger
	// Redact makes undecodable bytes fit to be kept in a dead letter; nil keeps none of them.
	Redact func(raw []byte) []byte

	Log        *zap.Logger           // nil: none
	Registerer prometheus.Registerer // nil: metrics are kept but not registered
}

// withDefaults returns the configuration with its zero fields filled in, or every
// contradiction in it.
func (c Config) withDefaults() (Config, error) {
	duration := func(d *time.Duration, def time.Duration) {
		switch {
		case *d == 0:
			*d = def
		case *d < 0:
			*d = 0
		}
	}
	duration(&c.Hold, 2*time.Second)
	duration(&c.HoldLimit, 30*time.Second)
	duration(&c.Lag, 15*time.Second)
	duration(&c.LongestRequest, 10*time.Minute)
	duration(&c.Linger, 2*time.Second)
	duration(&c.RejudgePoll, 15*time.Second)
	duration(&c.RetryMin, 100*time.Millisecond)
	duration(&c.RetryMax, 10*time.Second)
	number := func(n *int, def int) {
		if *n == 0 {
			*n = def
		}
	}
	number(&c.BatchRecords, 50_000)
	number(&c.BatchBytes, 64<<20)
	number(&c.Parallel, runtime.GOMAXPROCS(0))
	number(&c.CorrectionRows, 10_000)
	number(&c.CorrectionLog, 65_536)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, 2*int64(c.BatchBytes))
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Log = c.Log.Named("replay.runner")

	var errs []error
	positive := func(name string, n int) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("runner config: %s is %d, must be positive", name, n))
		}
	}
	positive("batch records", c.BatchRecords)
	positive("batch bytes", c.BatchBytes)
	positive("parallel", c.Parallel)
	positive("correction rows", c.CorrectionRows)
	positive("correction log", c.CorrectionLog)
	if c.InFlightBytes < int64(c.BatchBytes) {
		errs = append(errs, fmt.Errorf("runner config: in-flight bytes %d below batch bytes %d: no block would fit",
			c.InFlightBytes, c.BatchBytes))
	}
	if c.RetryMin > c.RetryMax {
		errs = append(errs, fmt.Errorf("runner config: retry minimum %s above maximum %s", c.RetryMin, c.RetryMax))
	}
	return c, errors.Join(errs...)
}
