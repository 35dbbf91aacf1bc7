package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Session is a connection of its own: what is set on it ends with it and affects no other statement. It is for callers that lower their
// rights, which cannot be raised again (readonly). A session runs one statement at a time and must be closed.
type Session struct {
	e *Engine
	c *conn
}

// Session opens a session in the database, with settings applied in one statement, in the given
// order. An error of the engine has the method Code() int.
func (e *Engine) Session(db string, settings [][2]string) (*Session, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	e.live.Add(1)
	e.mu.Unlock()
	c, err := e.connect()
	if err != nil {
		e.live.Done()
		return nil, err
	}
	s := &Session{e, c}
	if err := e.exec(c, "USE "+quoteName(db)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var set bytes.Buffer
	for i, kv := range settings {
		sep := ", "
		if i == 0 {
			sep = "SET "
		}
		set.WriteString(sep + quoteName(kv[0]) + " = " + quoteString(kv[1]))
	}
	if set.Len() > 0 {
		if err := e.exec(c, set.String()); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Query runs a statement and returns its result in the format, which a FORMAT clause overrides; params are the values of {name:Type}.
// Native results of SELECT are read from the engine as they are read from the body; others are held in memory. The body must be closed
// before the next statement. An error before the first byte is returned here, a later one by the body's Read; the engine's have the method
// Code() int. When ctx ends, the statement is killed.
func (s *Session) Query(ctx context.Context, sql string, params [][2]string, format string) (io.ReadCloser, error) {
	e, c, text := s.e, s.c, []byte(sql)
	if word := firstWord(sql); format == "Native" && (word == "SELECT" || word == "WITH") {
		b := &streamBody{e: e, c: c, ctx: ctx, bare: true, free: func(*conn) {}}
		var failure string
		e.killable(ctx, c, func() {
			b.stream = e.lib.run(e.lib.stream, c.handle, text, params)
			if failure = e.lib.resultError(b.stream); failure == "" {
				failure = b.fetch()
			}
		})
		if failure == "" {
			return b, nil
		}
		b.finish(false)
		return nil, s.failed(ctx, failure)
	}
	var r uintptr
	e.killable(ctx, c, func() { r = e.lib.runAs(e.lib.query, c.handle, text, params, append([]byte(format), 0)) })
	failure, data := e.lib.resultError(r), e.lib.resultBytes(r)
	e.lib.destroyResult(r)
	if failure != "" {
		return nil, s.failed(ctx, failure)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// failed returns the engine's exception, or the context's error if that caused it.
func (s *Session) failed(ctx context.Context, text string) error {
	x := newException(text)
	if err := ctx.Err(); err != nil && x.code == codeCancelled {
		return err
	}
	return x
}

// Close ends the session.
func (s *Session) Close() error {
	s.e.discard(s.c)
	return nil
}
