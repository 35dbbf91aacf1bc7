package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// Waiting reports the progress of a connection, each change once.
type Waiting struct {
	Out      io.Writer
	Ask      func(context.Context) ([]Step, error)
	Declined map[string]bool   // steps that are not waited for
	told     map[string]string // by step: state and advice, whose changes are reported; texts count seconds
	On       string            // the first step that is not done
	idle     int               // checks since something was reported
	lost     int               // looks in a row that failed
}

const (
	// remindAfter is how many looks without news there are between two reminders.
	remindAfter = 60
	// lostAfter is how many looks may fail in a row: a server that restarts is not asked again
	// at once.
	lostAfter = 30
)

// Look checks once and reports what changed. It returns true if every step is done.
func (w *Waiting) Look(ctx context.Context) (bool, error) {
	steps, err := w.Ask(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		if w.lost++; w.lost >= lostAfter {
			return false, err
		}
		return false, nil
	}
	w.lost = 0
	if w.told == nil {
		w.told = map[string]string{}
	}
	w.idle++
	open := 0
	for _, s := range steps {
		if w.Declined[s.ID] && s.State != StateDone {
			continue
		}
		if s.State != StateDone {
			if open++; open == 1 {
				w.On = s.Title
			}
		}
		key := s.State + s.Todo
		// A step that waits for another is reported when its turn comes.
		if w.told[s.ID] == key || s.State == StateWaiting && open > 1 {
			continue
		}
		w.told[s.ID], w.idle = key, 0
		w.tell(s)
	}
	if open > 0 && w.idle >= remindAfter {
		w.idle = 0
		fmt.Fprintf(w.Out, "still     %s\n", w.On)
	}
	return open == 0, nil
}

func (w *Waiting) tell(s Step) {
	fmt.Fprintf(w.Out, "%-9s %s", s.State, s.Title)
	if s.Text != "" {
		fmt.Fprintf(w.Out, ": %s", safe.Text(s.Text))
	}
	fmt.Fprintln(w.Out)
	if s.Todo == "" {
		return
	}
	for line := range strings.SplitSeq(s.Todo, "\n") {
		fmt.Fprintf(w.Out, "          %s\n", safe.Text(line))
	}
}

// AsRunning returns the configuration with the address the running server listens on: it may have flags that this command was not given.
func AsRunning(ctx context.Context, cfg config.Config, cluster string) config.Config {
	client, err := apiclient.Dial(ctx, "", cfg.DataDir)
	if err != nil {
		return cfg // none runs; waiting says so
	}
	answer, err := apiclient.Ask(ctx, client, ConnectionRequest{Cluster: cluster})
	if err != nil || answer.Receiver.Listen == "" {
		return cfg // not known there
	}
	cfg.Webhook.Listen = answer.Receiver.Listen
	return cfg
}

// RunningSteps returns a function that queries the running server about the connection. It finds the server
// anew each time: the server may be started, stopped and started again meanwhile. The store is never opened
// here: that would keep the server from starting.
func RunningSteps(cfg config.Config, cluster string) func(context.Context) ([]Step, error) {
	return func(ctx context.Context) ([]Step, error) {
		client, err := apiclient.Dial(ctx, "", cfg.DataDir)
		if errors.Is(err, apiclient.ErrNoServer) {
			return []Step{{ID: "server", Title: "The server runs", State: StateWaiting, Text: "None is running on " +
				config.Absolute(cfg.DataDir) + ".",
				Todo: Site{Config: cfg}.ServeCommand()}}, nil
		}
		if err != nil {
			return nil, err
		}
		defer client.Close()
		answer, err := apiclient.Ask(ctx, client, ConnectionRequest{Cluster: cluster})
		if err != nil {
			return nil, err
		}
		return append([]Step{{ID: "server", Title: "The server runs", State: StateDone}}, answer.Steps...), nil
	}
}
