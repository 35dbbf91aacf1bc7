package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame is the largest request the guard passes on, in bytes. The largest record a topic
// accepts is far below it.
const maxFrame = 64 << 20

// frameHead is what the guard reads of a request: size (4), key (2), version (2) and
// correlation ID (4), all of which every request has.
const frameHead = 12

// allowed reports whether the broker may see a request: those for producing, consuming in a
// group and managing topics. The broker's reader ends the process on an unknown key, so these
// must not reach it; transactions, ACLs and the like are not needed.
func allowed(key int16) bool {
	switch kmsg.Key(key) {
	case kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata,
		kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.JoinGroup,
		kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.SyncGroup, kmsg.DescribeGroups, kmsg.ListGroups,
		kmsg.ApiVersions, kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.DeleteRecords,
		kmsg.DescribeConfigs, kmsg.AlterConfigs, kmsg.IncrementalAlterConfigs,
		kmsg.CreatePartitions, kmsg.DeleteGroups, kmsg.OffsetDelete:
		return true
	}
	return false
}

// guardConn is the broker's end of a connection: it checks the head of every frame before the
// broker reads any of it, and ends the connection on one the broker must not see. In the other
// direction it holds acknowledgements back until they are true (see durable). The broker calls
// Read from one goroutine at a time and Write from one, with a whole response each time, in the
// order of the requests.
type guardConn struct {
	net.Conn
	reject    func(reason string)
	responded func(key, version int16, frame []byte) error

	mu         sync.Mutex
	unanswered [][2]int16 // key and version of the requests not yet answered, in order

	head    [frameHead]byte
	pending []byte // part of head not yet read
	body    int    // bytes of the frame after head
}

func (g *guardConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(g.pending) == 0 && g.body == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	if len(g.pending) > 0 {
		n := copy(p, g.pending)
		g.pending = g.pending[n:]
		return n, nil
	}
	n, err := g.Conn.Read(p[:min(len(p), g.body)])
	g.body -= n
	return n, err
}

// next reads and checks the head of the next frame.
func (g *guardConn) next() error {
	for n := 0; n < frameHead; {
		m, err := g.Conn.Read(g.head[n:])
		if n += m; err != nil {
			return err
		}
	}
	size := binary.BigEndian.Uint32(g.head[0:4])
	key := int16(binary.BigEndian.Uint16(g.head[4:6]))
	version := int16(binary.BigEndian.Uint16(g.head[6:8]))
	switch {
	case size < frameHead-4 || size > maxFrame:
		g.reject("size")
		return fmt.Errorf("refuse a frame of %d bytes: want %d to %d", size, frameHead-4, maxFrame)
	case !allowed(key):
		g.reject("key")
		return fmt.Errorf("refuse a request with key %d", key)
	case version < 0 || version > kmsg.RequestForKey(key).MaxVersion():
		g.reject("version")
		return fmt.Errorf("refuse version %d of request %d", version, key)
	}
	g.pending, g.body = g.head[:], int(size)-(frameHead-4)
	g.mu.Lock()
	g.unanswered = append(g.unanswered, [2]int16{key, version})
	g.mu.Unlock()
	return nil
}

// Write passes a response on.
func (g *guardConn) Write(frame []byte) (int, error) {
	g.mu.Lock()
	if len(g.unanswered) == 0 {
		g.mu.Unlock()
		return 0, errors.New("response without a request")
	}
	q := g.unanswered[0]
	g.unanswered = g.unanswered[1:]
	g.mu.Unlock()
	if err := g.responded(q[0], q[1], frame); err != nil {
		return 0, err
	}
	return g.Conn.Write(frame)
}

var errClosed = errors.New("embedded broker is closed")

// pipeListener is a listener without a network: dial hands one end of an in-process pipe
// to the caller and the other to Accept.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	reject    func(reason string)
	responded func(key, version int16, frame []byte) error
}

func newPipeListener(reject func(string), responded func(key, version int16, frame []byte) error) *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{}), reject: reject, responded: responded}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	err := errClosed
	select {
	case l.conns <- &guardConn{Conn: server, reject: l.reject, responded: l.responded}:
		return client, nil
	case <-l.closed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	client.Close()
	server.Close()
	return nil, fmt.Errorf("dial embedded broker: %w", err)
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return address }
