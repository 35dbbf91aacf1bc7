package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxFrame is the largest watch event that is read: ten times what etcd stores.
const maxFrame = 16 << 20

// frame is one watch event as it arrived.
type frame struct {
	kind    string // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
	object  []byte
	arrived time.Time
	drained time.Time // nothing was in transit at this moment; zero if not known
	err     error     // of the last frame only: why there are no more; io.EOF at an orderly end
}

// frames reads a watch's body into a queue until it ends, then closes the queue. It reads
// ahead of the sender, so that arrival times reflect the network, not Kafka.
func (r *reflector) frames(ctx context.Context, body io.Reader, queue chan<- frame) {
	defer close(queue)
	now := r.w.cfg.Now
	in := &timedReader{r: body, now: now, quiet: r.w.cfg.Delay}
	dec := json.NewDecoder(in)
	for {
		var raw struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		in.budget = maxFrame
		err := dec.Decode(&raw)
		var syntax *json.SyntaxError
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &mismatch) {
			err = errors.Join(errMalformed, err)
		}
		f := frame{kind: raw.Type, object: raw.Object, arrived: now(), drained: in.drained, err: err}
		select {
		case queue <- f:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		if raw.Type == "BOOKMARK" {
			in.live = true
		}
	}
}

// timedReader records when its source had nothing to read. If a read waited for longer than
// an event may be in transit, nothing was in transit when the read began.
type timedReader struct {
	r       io.Reader
	now     func() time.Time
	quiet   time.Duration
	budget  int  // bytes that may still be read for the current frame
	live    bool // the initial backlog of the watch has been read: a wait is meaningful
	drained time.Time
}

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (int, error) {
	if t.budget <= 0 {
		return 0, fmt.Errorf("%w: watch event of more than %d bytes", errMalformed, maxFrame)
	}
	p = p[:min(len(p), t.budget)]
	began := t.now()
	n, err := t.r.Read(p)
	t.budget -= n
	if t.live && t.now().Sub(began) >= t.quiet {
		t.drained = began
	}
	return n, err
}
