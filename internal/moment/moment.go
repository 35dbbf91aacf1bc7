// Package moment reads times and durations as people write them on a command line: 24h, yesterday, "2 days ago". Programs exchange
// RFC 3339, which it reads too.
//
// The package is pure: whoever asks says what time it is, and in which time zone.
package moment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Want says how a time may be written, for messages and help.
const Want = `24h, 7d, "2 days ago", today, yesterday, monday, 08:30, "yesterday 08:30", 2026-11-20, "2026-11-20 11:36" or ` +
	`2026-11-20T11:36:00Z`

// InvalidError is the error of a text that cannot be read as a time.
type InvalidError struct{ text string }

func (e InvalidError) Error() string { return fmt.Sprintf("invalid time %q: want %s", e.text, Want) }

// Parse reads a time. What is not written with a zone is of the zone of now: a day is its beginning, a time of day
// is today's, a weekday the last one before today, and a duration that long before now.
func Parse(text string, now time.Time) (time.Time, error) {
	written := strings.Join(strings.Fields(text), " ")
	if t, ok := absolute(written, now.Location()); ok {
		return t, nil
	}
	words := strings.ToLower(written)
	if t, ok := onDay(words, now); ok {
		return t, nil
	}
	if d, ok := ago(words); ok && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, InvalidError{text}
}

// Exact reports whether a text has a time of its own, which no clock and no time zone changes.
func Exact(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// absolute reads a date, with or without a time of day and a zone.
func absolute(text string, loc *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01-02 15:04", time.DateTime,
		"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// onDay reads a day by its name, a time of day, or both.
func onDay(words string, now time.Time) (time.Time, bool) {
	day, clock, both := strings.Cut(words, " ")
	back, named := daysBack(day, now.Weekday())
	switch {
	case words == "now":
		return now, true
	case !named && both:
		return time.Time{}, false
	case !named && day == "":
		return time.Time{}, false
	case !named:
		clock = day
	}
	var hour, minute, second int
	if clock != "" {
		t, err := time.Parse("15:04:05", clock)
		if err != nil {
			t, err = time.Parse("15:04", clock)
		}
		if err != nil {
			return time.Time{}, false
		}
		hour, minute, second = t.Clock()
	}
	year, month, date := now.Date()
	return time.Date(year, month, date-back, hour, minute, second, 0, now.Location()), true
}

// daysBack returns how many days ago a named day was.
func daysBack(word string, today time.Weekday) (days int, ok bool) {
	switch word {
	case "today":
		return 0, true
	case "yesterday":
		return 1, true
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); word == name || word == name[:3] {
			return (int(today-d)+6)%7 + 1, true
		}
	}
	return 0, false
}

// ago reads how long ago something was: a duration, or a number and a unit in words.
func ago(words string) (time.Duration, bool) {
	words, past := strings.CutSuffix(words, " ago")
	number, unit, both := strings.Cut(words, " ")
	if !both {
		d, err := Duration(words)
		return d, err == nil
	}
	if number == "a" || number == "an" || number == "one" {
		number = "1"
	}
	n, err := strconv.ParseUint(number, 10, 32)
	of, known := map[string]string{"minute": "m", "hour": "h", "day": "d", "week": "w"}[strings.TrimSuffix(unit, "s")]
	if err != nil || !known || !past {
		return 0, false
	}
	d, err := Duration(strconv.FormatUint(n, 10) + of)
	return d, err == nil
}

// Duration reads what time.ParseDuration does, and days of 24 hours and weeks beside it: 7d, 2w, 1d12h.
func Duration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("invalid duration %q: want one such as 2w, 7d, 12h, 1h30m or 250ms", text)
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(text, "+")
	}
	if rest == "0" {
		return 0, nil
	}
	total := 0.0
	var exact time.Duration // without days and weeks
	for part := range parts(rest) {
		number, unit := part[0], part[1]
		days := map[string]float64{"d": 1, "w": 7}[unit]
		if days == 0 {
			d, err := time.ParseDuration(number + unit)
			if err != nil || exact+d < exact {
				return 0, wrong
			}
			exact += d
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, wrong
		}
		total += n * days * float64(24*time.Hour)
	}
	if rest == "" || total+float64(exact) >= math.MaxInt64 {
		return 0, wrong
	}
	d := time.Duration(total) + exact
	if negative {
		d = -d
	}
	return d, nil
}

// parts yields the numbers of a duration, each with its unit.
func parts(text string) func(yield func([2]string) bool) {
	return func(yield func([2]string) bool) {
		digit := func(c rune) bool { return c >= '0' && c <= '9' || c == '.' }
		for text != "" {
			unit := len(text) - len(strings.TrimLeftFunc(text, digit))
			end := strings.IndexFunc(text[unit:], digit)
			if end < 0 {
				end = len(text) - unit
			}
			if !yield([2]string{text[:unit], text[unit : unit+end]}) {
				return
			}
			text = text[unit+end:]
		}
	}
}
