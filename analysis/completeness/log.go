package completeness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// PluginError is a line of an apiserver's log that reports which audit events a backend lost.
type PluginError struct {
	Plugin  string      `json:"plugin"` // webhook, buffered, log
	Events  int64       `json:"events"`
	Reason  string      `json:"reason"`
	Cause   string      `json:"cause"`
	Written time.Time   `json:"written,omitzero"` // the year is taken from the impacted events
	Lost    []LostEvent `json:"lost"`             // as far as the log names them
}

// LostEvent is an event that a backend lost, as the apiserver's log names it. All of it may
// be chosen by a client.
type LostEvent struct {
	Received time.Time `json:"received"`
	AuditID  string    `json:"auditID"`
	Stage    string    `json:"stage"`
	Verb     string    `json:"verb"`
	User     string    `json:"user"`
	URI      string    `json:"requestURI"`
	Response string    `json:"response"`
}

// Bounds on what is read of a log: clients control its content.
const (
	maxLogLine   = 8 << 20
	maxLostNames = 100_000
)

var (
	pluginError = regexp.MustCompile(`Error in audit plugin '([a-z_]+)' affecting (\d+) audit events: (.*)`)
	impacted    = regexp.MustCompile(`^(\S+) AUDIT: id=("(?:[^"\\]|\\.)*") stage=("(?:[^"\\]|\\.)*") ip="(?:[^"\\]|\\.)*" ` +
		`method=("(?:[^"\\]|\\.)*") user=("(?:[^"\\]|\\.)*") .* uri=("(?:[^"\\]|\\.)*") response="([^"]*)"`)
	klogHead    = regexp.MustCompile(`^[EWIF](\d{4}) (\d\d:\d\d:\d\d\.\d+) `)
	unencodable = regexp.MustCompile(`(?i)MarshalJSON|invalid character|unable to encode|cannot unmarshal|unexpected end of JSON`)
)

// ReadLog finds in a kube-apiserver's log, as text or JSON, what its audit backends lost. Other
// lines are skipped. What was found is returned together with an error.
func ReadLog(r io.Reader) ([]PluginError, error) {
	var out []PluginError
	names := 0
	lines := bufio.NewReaderSize(r, 64<<10)
	open := false // the following lines name events of the last error
	for {
		line, err := logLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return out, fmt.Errorf("read the apiserver's log: %w", err)
		}
		for text := range strings.SplitSeq(message(line), "\n") {
			if m := pluginError.FindStringSubmatch(text); m != nil {
				n, _ := strconv.ParseInt(m[2], 10, 64) // digits
				e := PluginError{Plugin: m[1], Events: n, Reason: m[3], Cause: CauseOutage}
				switch {
				case m[1] == "buffered":
					e.Cause = CauseOverflow
				case unencodable.MatchString(m[3]):
					e.Cause = CauseUnencodable
				}
				e.Written = written(line)
				out, open = append(out, e), true
				continue
			}
			if m := impacted.FindStringSubmatch(text); m != nil && open && names < maxLostNames {
				last := &out[len(out)-1]
				last.Lost = append(last.Lost, lostEvent(m))
				names++
				if t := last.Lost[0].Received; last.Written.Year() == 0 && !last.Written.IsZero() && !t.IsZero() {
					last.Written = last.Written.AddDate(t.Year(), 0, 0)
				}
				continue
			}
			if klogHead.MatchString(text) {
				open = false
			}
		}
		if err != nil {
			return out, nil
		}
	}
}

// logLine reads a line; if it is too long, its beginning.
func logLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		if b.Len() < maxLogLine {
			b.Write(part[:min(len(part), maxLogLine-b.Len())])
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimSuffix(b.String(), "\n"), err
		}
	}
}

// message returns the text of a line: for a JSON log its message and error.
func message(line string) string {
	if !strings.HasPrefix(line, "{") {
		return line
	}
	var entry struct {
		Msg string `json:"msg"`
		Err string `json:"err"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil {
		return line
	}
	return entry.Msg + "\n" + entry.Err
}

// written returns the time of a line of a text log, in year 0; zero if it has none.
func written(line string) time.Time {
	m := klogHead.FindStringSubmatch(line)
	if m == nil {
		return time.Time{}
	}
	t, err := time.Parse("0102 15:04:05.999999", m[1]+" "+m[2])
	if err != nil {
		return time.Time{}
	}
	return t
}

func lostEvent(m []string) LostEvent {
	text := func(quoted string) string {
		s, err := strconv.Unquote(quoted)
		if err != nil {
			return strings.Trim(quoted, `"`)
		}
		return s
	}
	e := LostEvent{AuditID: text(m[2]), Stage: text(m[3]), Verb: text(m[4]), User: text(m[5]), URI: text(m[6]), Response: m[7]}
	if t, err := time.Parse(time.RFC3339Nano, m[1]); err == nil {
		e.Received = t.UTC()
	}
	return e
}

// Suspects returns the events of an unencodable batch that may be the cause: only the body of a
// PATCH is recorded as it was sent.
func (e *PluginError) Suspects() []LostEvent {
	if e.Cause != CauseUnencodable {
		return nil
	}
	var out []LostEvent
	for _, l := range e.Lost {
		if l.Verb == "patch" {
			out = append(out, l)
		}
	}
	return out
}
