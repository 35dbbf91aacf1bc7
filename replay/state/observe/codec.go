package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// observationVersion is the newest version of the observation encoding. A reader accepts this
// and every earlier one; a writer names the earliest one that holds what it writes.
const (
	observationFirst   = 1
	observationSecond  = 2 // has the members unchanged, created and update
	observationVersion = 3 // has the member patch, and the source read
)

// version returns the earliest version of the encoding that holds the observation.
func (o *Observation) version() int {
	switch {
	case o.Patch, o.Source == SourceRead:
		return observationVersion
	case o.Unchanged || o.Created || o.Update:
		return observationSecond
	}
	return observationFirst
}

// ErrVersion is returned for an observation written by a newer release.
var ErrVersion = errors.New("unknown observation version")

// observationJSON is the stored form of an Observation.
type observationJSON struct {
	Version         int             `json:"v"`
	Source          string          `json:"source"`
	Resource        string          `json:"resource"`
	Namespace       string          `json:"namespace,omitempty"`
	Name            string          `json:"name,omitempty"`
	UID             string          `json:"uid,omitempty"`
	ResourceVersion string          `json:"resourceVersion,omitempty"`
	Deleted         bool            `json:"deleted,omitempty"`
	Unknown         bool            `json:"unknown,omitempty"`
	AllOf           bool            `json:"allOf,omitempty"`
	Complete        bool            `json:"complete,omitempty"`
	Unchanged       bool            `json:"unchanged,omitempty"`
	Created         bool            `json:"created,omitempty"`
	Update          bool            `json:"update,omitempty"`
	Patch           bool            `json:"patch,omitempty"`
	NotBefore       *time.Time      `json:"notBefore,omitempty"`
	NotAfter        *time.Time      `json:"notAfter,omitempty"`
	Since           *time.Time      `json:"since,omitempty"`
	Object          json.RawMessage `json:"object,omitempty"`
}

// at returns where to store one of the times: not before, not after, since.
func (j *observationJSON) at(i int) *time.Time {
	t := new(time.Time)
	*[]**time.Time{&j.NotBefore, &j.NotAfter, &j.Since}[i] = t
	return t
}

// Append appends the observation's JSON encoding to dst. The encoding carries its version; equal observations have equal encodings. An
// Object that is not valid JSON cannot be stored and is written as unknown content.
func (o Observation) Append(dst []byte) []byte {
	if quickly, ok := o.appendQuickly(dst); ok {
		return quickly
	}
	return o.appendSlowly(dst)
}

// appendSlowly writes the observation by encoding/json.
func (o Observation) appendSlowly(dst []byte) []byte {
	j := observationJSON{
		Version: o.version(), Source: o.Source.String(), Resource: o.Resource,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Deleted: o.Deleted, Unknown: o.Unknown, AllOf: o.AllOf, Complete: o.Complete, Unchanged: o.Unchanged, Created: o.Created,
		Update: o.Update, Patch: o.Patch, Object: o.Object,
		NotBefore: stored(o.NotBefore), NotAfter: stored(o.NotAfter), Since: stored(o.Since),
	}
	b, err := json.Marshal(j)
	if err != nil {
		j.Object, j.Unknown = nil, true
		if b, err = json.Marshal(j); err != nil {
			// Only a year outside [0,9999] is left to fail.
			j.NotBefore, j.NotAfter, j.Since = nil, nil, nil
			b, _ = json.Marshal(j)
		}
	}
	return append(dst, b...)
}

// appendQuickly writes what appendSlowly writes, several times as fast; it returns false for what is not as it nearly always is.
func (o Observation) appendQuickly(dst []byte) ([]byte, bool) {
	from := len(dst)
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, int64(o.version()), 10)
	for i, text := range [...]string{o.Source.String(), o.Resource, o.Namespace, o.Name, o.UID, o.ResourceVersion} {
		if text == "" && i > 1 {
			continue
		}
		if !plainText(text) {
			return dst[:from], false
		}
		dst = append(append(dst, ',', '"'), observationMembers[1+i]...)
		dst = append(append(append(dst, `":"`...), text...), '"')
	}
	for i, flag := range [...]bool{o.Deleted, o.Unknown, o.AllOf, o.Complete, o.Unchanged, o.Created, o.Update, o.Patch} {
		if flag {
			dst = append(append(append(dst, ',', '"'), observationMembers[7+i]...), `":true`...)
		}
	}
	for i, t := range [...]time.Time{o.NotBefore, o.NotAfter, o.Since} {
		if t.IsZero() {
			continue
		}
		t = t.UTC()
		if y := t.Year(); y < 0 || y > 9999 {
			return dst[:from], false
		}
		dst = append(append(append(dst, ',', '"'), observationMembers[15+i]...), `":"`...)
		dst = append(t.AppendFormat(dst, time.RFC3339Nano), '"')
	}
	if len(o.Object) > 0 {
		p := jsontext.NewPlain(o.Object)
		if !p.Skip() || !p.Done() || p.Spaced {
			return dst[:from], false
		}
		for _, c := range [...]byte{'<', '>', '&', 0xe2} { // the last begins two line separators
			if bytes.IndexByte(o.Object, c) >= 0 {
				return dst[:from], false
			}
		}
		dst = append(append(dst, `,"object":`...), o.Object...)
	}
	return append(dst, '}'), true
}

// plainText reports whether encoding/json writes a text without escapes.
func plainText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// stored returns a time as it is written, nil if it is zero.
func stored(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

var observationMembers = []string{"v", "source", "resource", "namespace", "name", "uid", "resourceVersion",
	"deleted", "unknown", "allOf", "complete", "unchanged", "created", "update", "patch", "notBefore", "notAfter", "since", "object"}

// readPlainly reads what Observation.Append wrote. Object is part of the input.
func (j *observationJSON) readPlainly(p *jsontext.Plain) bool {
	text := []*string{&j.Source, &j.Resource, &j.Namespace, &j.Name, &j.UID, &j.ResourceVersion}
	flags := []*bool{&j.Deleted, &j.Unknown, &j.AllOf, &j.Complete, &j.Unchanged, &j.Created, &j.Update, &j.Patch}
	return p.Object(observationMembers, func(i int) bool {
		p.Peek()
		begin := p.Pos
		switch {
		case i == 0:
			var version int64
			ok := p.Integer(&version)
			j.Version = int(version)
			return ok && version >= observationFirst && version <= observationVersion
		case i <= 6:
			s, ok := p.Bytes()
			*text[i-1] = string(s)
			return ok
		case i <= 14:
			if !p.Skip() {
				return false
			}
			*flags[i-7] = string(p.Buf[begin:p.Pos]) == "true"
			return *flags[i-7] || string(p.Buf[begin:p.Pos]) == "false"
		case i <= 17:
			if _, ok := p.Bytes(); !ok {
				return false
			}
			return j.at(i-15).UnmarshalJSON(p.Buf[begin:p.Pos]) == nil
		}
		ok := p.Skip()
		j.Object = p.Buf[begin:p.Pos:p.Pos]
		return ok && string(j.Object) != "null"
	}) && p.Done()
}

// Decode decodes what Append wrote. The result does not alias b.
func Decode(b []byte) (Observation, error) {
	var j observationJSON
	if p := jsontext.NewPlain(b); j.readPlainly(&p) {
		j.Object = bytes.Clone(j.Object)
	} else {
		j = observationJSON{}
		if err := json.Unmarshal(b, &j); err != nil {
			return Observation{}, fmt.Errorf("decode observation: %w", err)
		}
	}
	if j.Version < observationFirst || j.Version > observationVersion {
		return Observation{}, fmt.Errorf("decode observation: version %d: %w", j.Version, ErrVersion)
	}
	o := Observation{
		Resource: j.Resource, Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		ResourceVersion: j.ResourceVersion, Deleted: j.Deleted, Unknown: j.Unknown,
		AllOf: j.AllOf, Complete: j.Complete, Unchanged: j.Unchanged, Created: j.Created, Update: j.Update, Patch: j.Patch,
		Object: j.Object,
	}
	switch j.Source {
	case "snapshot":
		o.Source = SourceSnapshot
	case "audit":
		o.Source = SourceAudit
	case "watch":
		o.Source = SourceWatch
	case "read":
		o.Source = SourceRead
	default:
		return Observation{}, fmt.Errorf("decode observation of %s: unknown source %q", j.Resource, j.Source)
	}
	for _, t := range []struct {
		from *time.Time
		to   *time.Time
	}{{j.NotBefore, &o.NotBefore}, {j.NotAfter, &o.NotAfter}, {j.Since, &o.Since}} {
		if t.from != nil {
			*t.to = t.from.UTC()
		}
	}
	return o, nil
}
