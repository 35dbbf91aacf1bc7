package moment

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	now := time.Date(2026, 10, 26, 9, 2, 3, 0, berlin) // a Monday; the clocks went back the day before
	for text, want := range map[string]string{
		"24h": "2026-10-25T08:02:03Z", "7d": "2026-10-19T08:02:03Z", "2w": "2026-10-12T08:02:03Z", "1d12h": "2026-10-24T20:02:03Z",
		"90m": "2026-10-26T06:32:03Z", "24h ago": "2026-10-25T08:02:03Z", "2 days ago": "2026-10-24T08:02:03Z",
		"1 day ago": "2026-10-25T08:02:03Z", "an hour ago": "2026-10-26T07:02:03Z", "a week  ago": "2026-10-19T08:02:03Z",
		"30 Minutes ago": "2026-10-26T07:32:03Z", "0": "2026-10-26T08:02:03Z",
		"now": "2026-10-26T08:02:03Z", "today": "2026-10-25T23:00:00Z", "Yesterday": "2026-10-24T22:00:00Z",
		"yesterday 18:00": "2026-10-25T17:00:00Z", "today 08:30": "2026-10-26T07:30:00Z", "08:30": "2026-10-26T07:30:00Z",
		"8:30:15": "2026-10-26T07:30:15Z", "friday": "2026-10-22T22:00:00Z", "fri 17:00": "2026-10-23T15:00:00Z",
		"monday": "2026-10-18T22:00:00Z", "sunday": "2026-10-24T22:00:00Z",
		"2026-10-20": "2026-10-19T22:00:00Z", "2026-10-20 11:36": "2026-10-20T09:36:00Z", "2026-10-20 11:36:05": "2026-10-20T09:36:05Z",
		"2026-10-20T11:36": "2026-10-20T09:36:00Z", "2026-10-20T11:36:05.25": "2026-10-20T09:36:05.25Z",
		"2026-10-20T11:36Z": "2026-10-20T11:36:00Z", "2026-10-20T11:36:00Z": "2026-10-20T11:36:00Z",
		"2026-10-20T11:36:00.123456+02:00": "2026-10-20T09:36:00.123456Z",
	} {
		if got, err := Parse(text, now); err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %s %v, want %s", text, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{"", " ", "tomorrow", "yesteday", "24", "h", "24x", "-24h", "2 days", "two days ago", "2 dayss ago",
		"-2 days ago", "2 days ago ago", "25:00", "yesterday 25:00", "now 08:00", "2026-13-01", "2026-02-30", "20.11.2026", "1764158400",
		"1h 30m", "999999999w", "9999999999 days ago", "today yesterday", "\x1b[31m", "ago", "NaNd", "1.2.3d", "1e3d"} {
		if got, err := Parse(text, now); !errors.As(err, new(InvalidError)) || !strings.HasPrefix(err.Error(), "invalid time ") {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{"2026-10-20T11:36:00Z": true, "2026-10-20T11:36:00+02:00": true, "2026-10-20T11:36:00": false,
		"2026-10-20": false, "24h": false} {
		if Exact(text) != want {
			t.Error(text)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute,
		"7d": 7 * 24 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1w2d3h": 9*24*time.Hour + 3*time.Hour,
		"-1s": -time.Second, "-1d": -24 * time.Hour, "+1d": 24 * time.Hour, "5µs": 5 * time.Microsecond} {
		if got, err := Duration(text); err != nil || got != want {
			t.Errorf("%q: %s %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "d", "1", "1x", "1d ", " 1d", "1D", "--1d", "1d-1h", "99999999d", "2562047h1000000h", "1dd",
		"."} {
		if got, err := Duration(text); err == nil || !strings.Contains(err.Error(), "invalid duration") {
			t.Errorf("%q: %s %v", text, got, err)
		}
	}
}
