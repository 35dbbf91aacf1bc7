package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/embedded"
)

// What can happen to one exchange with the broker or to one statement.
const (
	doRefuse    = "refuse"     // the connection breaks before anything is sent
	doCut       = "cut"        // it breaks in the middle of the request
	doLose      = "lose"       // the request has its effect, the answer is lost
	doCutAnswer = "cut-answer" // the answer ends in the middle
	doSlow      = "slow"       // the answer takes its time
	doMute      = "mute"       // nothing comes back and the connection stays open
	doDie       = "die"        // the process is killed before it is sent
	doDieAfter  = "die-after"  // the process is killed once it has had its effect
	doDieMid    = "die-mid"    // the process is killed when half of the effect is there
	doStop      = "stop"       // the process is stopped before it is sent, for longer than a session
)

// Requests to the broker that faults wait for.
const (
	onProduce = "produce"
	onFetch   = "fetch"
	onCommit  = "commit"
	onOffsets = "offsets"
	onGroup   = "group"
	onOther   = "other"
)

func requestOf(key uint16) string {
	switch key {
	case 0:
		return onProduce
	case 1:
		return onFetch
	case 2, 9:
		return onOffsets
	case 8:
		return onCommit
	case 10, 11, 12, 13, 14:
		return onGroup
	}
	return onOther
}

var errNetwork = errors.New("injected: connection refused")

// wire is one connection of a process to the broker, both directions of which go through
// goroutines that see whole frames.
type wire struct {
	p              *process
	client, broker net.Conn
	to             *embedded.Broker

	mu    sync.Mutex
	asked []pendingAnswer
}

// pendingAnswer is what will be done to the answer of a request that was passed on.
type pendingAnswer struct {
	what string
	wait time.Duration
}

// dial is stream.Config.Dial of a process.
func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	b, gone := p.w.brokerNow()
	if b == nil || gone == doRefuse {
		return nil, errNetwork
	}
	inner, err := b.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	w := &wire{p: p, client: far, broker: inner, to: b}
	if !p.add(w) {
		w.close()
		near.Close()
		return nil, errNetwork
	}
	go w.requests()
	go w.answers()
	return near, nil
}

func (w *wire) close() {
	w.client.Close()
	w.broker.Close()
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
	copy(frame, head[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

func (w *wire) requests() {
	defer w.p.drop(w)
	for {
		frame, err := readFrame(w.client)
		if err != nil || len(frame) < 8 {
			return
		}
		f := w.p.w.take(w.p, requestOf(binary.BigEndian.Uint16(frame[4:])))
		if w.p.alive() != nil {
			return
		}
		if _, gone := w.p.w.brokerNow(); gone == doMute {
			f.What = doMute
		}
		after := pendingAnswer{}
		switch f.What {
		case doRefuse:
			return
		case doCut, doDieMid:
			_, _ = w.broker.Write(frame[:len(frame)/2])
			if f.What == doDieMid {
				w.p.die()
			}
			return
		case doMute:
			continue
		case doSlow:
			after = pendingAnswer{doSlow, f.For}
		case doLose, doCutAnswer, doDieAfter:
			after.what = f.What
		case doDie:
			w.p.die()
			return
		case doStop:
			w.p.stopFor(f.For)
			if w.p.alive() != nil {
				return
			}
		}
		w.mu.Lock()
		w.asked = append(w.asked, after)
		w.mu.Unlock()
		if _, err := w.broker.Write(frame); err != nil {
			return
		}
	}
}

func (w *wire) answers() {
	defer w.p.drop(w)
	for {
		frame, err := readFrame(w.broker)
		if err != nil {
			return
		}
		w.mu.Lock()
		var a pendingAnswer
		if len(w.asked) > 0 {
			a, w.asked = w.asked[0], w.asked[1:]
		}
		w.mu.Unlock()
		switch a.what {
		case doLose:
			return
		case doCutAnswer:
			_, _ = w.client.Write(frame[:len(frame)/2])
			return
		case doSlow:
			time.Sleep(a.wait)
		case doDieAfter:
			w.p.die()
			return
		}
		if w.p.alive() != nil {
			return
		}
		// What a broker answers once it is ending may be about what its files, copied
		// meanwhile, do not hold.
		b, gone := w.p.w.brokerNow()
		if b != w.to {
			return
		}
		if gone == doMute {
			continue
		}
		if _, err := w.client.Write(frame); err != nil {
			return
		}
	}
}
