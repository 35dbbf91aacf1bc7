package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/moment"
	"github.com/retrial-io/retrial/internal/params"
)

// sameTimes are the names of the flags for the two ends of a range.
var sameTimes = [][2]string{{"from", "since"}, {"to", "until"}} //nolint:gochecknoglobals // constant table

// timeFlag is a parameter that is a time, written as package moment reads it.
type timeFlag struct {
	params.Flag
	name  string
	given *givenTime
}

// givenTime says by which flag a time was given, and how.
type givenTime struct {
	name, text string
	at         time.Time
}

// bindTime adds the flag of a time. The ends of a range go by two names: of those, the one that is not the parameter's own is shown in help
// if it is --since.
func bindTime(c *cobra.Command, f params.Flag) {
	given := new(givenTime)
	add := func(name, help string) {
		c.Flags().VarP(timeFlag{f, name, given}, name, f.Field.Short, help)
	}
	add(f.Field.Flag, f.Field.FlagHelp)
	for _, same := range sameTimes {
		other := same[0]
		switch f.Field.Flag {
		case same[0]:
			other = same[1]
		case same[1]:
		default:
			continue
		}
		add(other, fmt.Sprintf(`as --%s: 24h, 7d, yesterday, monday ("retrial help times" has all forms)`, f.Field.Flag))
		c.Flags().Lookup(other).Hidden = other != "since"
	}
	Before(c, func([]string) error {
		if given.name != "" {
			sayTime(c.ErrOrStderr(), "--"+given.name, given.text, given.at)
		}
		return nil
	})
}

// Set reads a time; "" is none.
func (f timeFlag) Set(text string) error {
	if given := f.given.name; given != "" && given != f.name {
		return errors.New("--" + given + " gives the same: leave one out")
	}
	*f.given = givenTime{}
	if text == "" {
		return f.Flag.Set("")
	}
	at, err := moment.Parse(text, time.Now().Truncate(time.Second))
	if err != nil {
		return err
	}
	*f.given = givenTime{f.name, text, at}
	return f.Flag.Set(at.Format(time.RFC3339Nano))
}

// ReadTime reads a time that somebody wrote as a value of its own, and says on w which it is.
func ReadTime(w io.Writer, name, text string) (time.Time, error) {
	at, err := moment.Parse(text, time.Now().Truncate(time.Second))
	if err != nil {
		return at, ExitWith(ExitUsage, fmt.Errorf("%s: %w", name, err))
	}
	sayTime(w, name, text, at)
	return at, nil
}

// sayTime says which time was meant, unless it was written in full.
func sayTime(w io.Writer, name, text string, at time.Time) {
	if !moment.Exact(text) {
		zone, _ := at.Zone()
		fmt.Fprintf(w, "hint: %s %s is %s (time zone %s)\n", name, SafeLines(text), at.Format(time.RFC3339), zone)
	}
}

// DurationVar adds a flag for a duration, with days and weeks: 7d.
func DurationVar(c *cobra.Command, into *time.Duration, name string, value time.Duration, help string) {
	*into = value
	c.Flags().Var((*duration)(into), name, help)
}

type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	x, err := moment.Duration(text)
	*d = duration(x)
	return err
}

// NewTimes returns the help on times.
func NewTimes() *cobra.Command {
	return &cobra.Command{
		Use:   "times",
		Short: "How times are written",
		Long: `How times are written, for --since, --from, --to, --at and every other flag that takes one:

  24h, 90m, 7d, 2w, 1d12h      so long ago
  2 days ago, an hour ago      the same, in words
  today, yesterday             the beginning of the day
  monday … sunday, mon … sun   the beginning of the last such day before today
  08:30                        today at that time
  yesterday 18:00, fri 17:00   that day at that time
  2026-11-20                   the beginning of the day
  2026-11-20 11:36             that day at that time, also 11:36:05, also with a T between
  2026-11-20T11:36:00Z         RFC 3339, with a zone: Z or +01:00

What names no zone is local time, of the machine the command runs on, or of the variable TZ: what was
understood is printed on standard error with its zone. --since and --from are one flag. A range has
what begins at --from or later and before --to: "--from yesterday --to today" is all of yesterday.

Scripts and the API use RFC 3339.`,
	}
}
