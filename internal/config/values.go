package config

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/moment"
)

// Duration is a time.Duration written as Go does ("2s", "30m"), with days ("30d").
type Duration time.Duration

// ParseDuration parses what [Duration.String] prints, and weeks.
func ParseDuration(s string) (Duration, error) {
	d, err := moment.Duration(s)
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q: want one such as 30d, 12h or 250ms", s)
	}
	return Duration(d), nil
}

// String writes whole days as days and everything else as Go does.
func (d Duration) String() string {
	if day := Duration(24 * time.Hour); d != 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return time.Duration(d).String()
}

// UnmarshalJSON accepts a duration string.
func (d *Duration) UnmarshalJSON(b []byte) (err error) {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("invalid duration %s: want a string such as \"250ms\" or \"30d\"", b)
	}
	*d, err = ParseDuration(s)
	return err
}

// Switch is a choice written on or off. YAML reads these words as true and false, which are
// accepted, too.
type Switch bool

// ParseSwitch parses what [Switch.String] prints, true and false.
func ParseSwitch(s string) (Switch, error) {
	switch s {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, fmt.Errorf("invalid value %q: want on or off", s)
}

// String returns "on" or "off".
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// UnmarshalJSON accepts a boolean or the words.
func (s *Switch) UnmarshalJSON(b []byte) (err error) {
	*s, err = ParseSwitch(strings.Trim(string(b), `"`))
	return err
}

// Bytes is a size, written as a number of bytes or with KiB, MiB, GiB.
type Bytes int64

var units = []struct {
	suffix string
	size   int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// ParseBytes parses what [Bytes.String] prints.
func ParseBytes(s string) (Bytes, error) {
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil || v < 0 || (v > 0 && v*u.size/u.size != v) {
				break
			}
			return Bytes(v * u.size), nil
		}
	}
	return 0, fmt.Errorf("invalid size %q: want one such as 1048576, 512KiB, 128MiB or 2GiB", s)
}

// String writes the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range units {
		if int64(b) >= u.size && int64(b)%u.size == 0 && u.size > 1 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalJSON accepts a number of bytes or a size string.
func (b *Bytes) UnmarshalJSON(raw []byte) (err error) {
	s := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
	}
	*b, err = ParseBytes(s)
	return err
}

// Loopback reports whether a listen address can be reached from this machine only.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
