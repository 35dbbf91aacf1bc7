package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// stream writes an answer whose list is long as it is read: the same bytes as Respond would, in chunks. When the reading fails and
// some of it has been sent, with the status: the connection is closed before the end, so that no client takes what came for all of it.
type stream struct {
	w     http.ResponseWriter
	out   *bufio.Writer
	begun bool
	rows  bool // the list has one
	sent  bool // the client has the status and the beginning
}

// Begin implements query.Sink.
func (s *stream) Begin(answer any) error {
	var head bytes.Buffer
	if err := json.NewEncoder(&head).Encode(answer); err != nil {
		return err
	}
	text, ok := bytes.CutSuffix(head.Bytes(), []byte("[]}\n"))
	if !ok {
		return errors.New("the list is not the last member of its answer")
	}
	private(s.w.Header())
	s.w.Header().Set("Content-Type", "application/json")
	s.begun, s.out = true, bufio.NewWriterSize(s, 64<<10)
	_, err := s.out.Write(append(text, '['))
	return err
}

// Add implements query.Sink.
func (s *stream) Add(item any) error {
	if s.rows {
		if err := s.out.WriteByte(','); err != nil {
			return err
		}
	}
	s.rows = true
	text := bytes.NewBuffer(s.out.AvailableBuffer())
	if err := json.NewEncoder(text).Encode(item); err != nil {
		return err
	}
	_, err := s.out.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return err
}

func (s *stream) end() error {
	if _, err := s.out.WriteString("]}\n"); err != nil {
		return err
	}
	return s.out.Flush()
}

// cut ends an answer that is not whole.
func (s *stream) cut() {
	if c, ok := s.w.(*counted); ok {
		c.code = http.StatusInternalServerError
	}
	panic(http.ErrAbortHandler)
}

// Write sends a piece, for which the client has a minute.
func (s *stream) Write(p []byte) (int, error) {
	s.sent = true
	// Not every ResponseWriter can; one that cannot has no connection to hold open.
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(time.Minute))
	return s.w.Write(p)
}
