package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// sequence is what happens to one cluster, and what is told of it. Whatever part of it is left
// out, the rest can be played.
type sequence struct {
	Level level
	// Born says that the log goes back to the cluster's making.
	Born  bool
	Steps []step
}

// step is a request, or something that happens between two.
type step struct {
	Action action `json:",omitempty"`

	// Of a request. In Path and Body {uid} and {rv} stand for those of the object it is about, as
	// it is when the request is made.
	User   string `json:",omitempty"`
	Method string `json:",omitempty"`
	Path   string `json:",omitempty"`
	Object string `json:",omitempty"` // what it is about: resource/namespace/name
	Type   string `json:",omitempty"` // of the body
	Accept string `json:",omitempty"`
	Body   string `json:",omitempty"`
	// Edit says that the body is the object as it stands, with Body merged into it.
	Edit bool `json:",omitempty"`

	// Wait comes before it: since the step before was over, or with Overlap had begun.
	Wait    time.Duration
	Overlap bool `json:",omitempty"`
	Pace    pace
	// Late is how many later events arrive before its own, Twice that it arrives again, Cut that
	// it arrives without its bodies.
	Late  int  `json:",omitempty"`
	Twice bool `json:",omitempty"`
	Cut   bool `json:",omitempty"`

	// Since says of a listing that it reaches back to the beginning of the log, Span how many
	// steps it takes.
	Since bool `json:",omitempty"`
	Span  int  `json:",omitempty"`
}

// action is what a step is.
type action string

const (
	request  action = ""
	logBegin action = "log begins" // what was done before was not recorded
	listing  action = "listing"    // of all there is, kind by kind
)

// parse reads what String wrote.
func parse(text string) (s sequence, err error) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var st step
		var to any = &st
		if i == 0 {
			to = &s
		}
		if err := json.Unmarshal([]byte(line), to); err != nil {
			return s, fmt.Errorf("line %d: %w", i+1, err)
		}
		if i > 0 {
			s.Steps = append(s.Steps, st)
		}
	}
	return s, nil
}

// String returns the sequence as JSON, one step a line.
func (s sequence) String() string {
	head, _ := json.Marshal(struct {
		Level level
		Born  bool
	}{s.Level, s.Born})
	out := string(head) + "\n"
	for _, st := range s.Steps {
		line, _ := json.Marshal(st)
		out += string(line) + "\n"
	}
	return out
}

// MarshalJSON writes a pace in one text.
func (p pace) MarshalJSON() ([]byte, error) {
	return json.Marshal(p.before.String() + "+" + p.after.String())
}

// UnmarshalJSON reads it.
func (p *pace) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	before, after, _ := strings.Cut(text, "+")
	var err error
	if p.before, err = time.ParseDuration(before); err == nil {
		p.after, err = time.ParseDuration(after)
	}
	return err
}
