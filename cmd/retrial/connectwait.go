package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

// ticker calls again, with a pause between two calls, until it returns true or an error, or
// ctx ends, whose cause is the error then.
type ticker func(ctx context.Context, again func() (done bool, err error)) error

// everySecond is the ticker of people who wait.
func everySecond(ctx context.Context, again func() (bool, error)) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if done, err := again(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// run prepares, registers, writes, prints, and waits.
func (o *connectOptions) run(ctx context.Context, s cli.Streams, cluster string) error {
	cfg, err := o.flags.Load()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	p, err := o.prepare(asRunning(ctx, cfg, cluster), cluster)
	if err != nil {
		return err
	}
	// A folder that cannot be written is found before a cluster is registered.
	if err := checkFolder(p.Dir); err != nil {
		return err
	}
	a, err := server.OpenIdentity(cfg)
	if err != nil {
		return err
	}
	cred, fresh, err := register(a, cluster)
	if err != nil {
		return err
	}
	p.Fresh, p.Expires = fresh, cred.Expires.Format(time.DateOnly)
	if err := p.Reach(a); err != nil {
		return err
	}
	files, err := p.Files(cred)
	if err != nil {
		return err
	}
	if p.Kept, err = writeFolder(p.Dir, files); err != nil {
		return err
	}
	steps := p.Steps()
	if _, err := writeFolder(p.Dir, []doctor.File{{Name: doctor.FileSteps, Content: steps, Mode: 0o644}}); err != nil {
		return err
	}
	if _, err := s.Out.Write(steps); err != nil {
		return fmt.Errorf("print the steps: %w", err)
	}
	doctor := "`retrial doctor " + cluster + p.DataDir() + "`"
	if o.noWait {
		_, err := fmt.Fprintf(s.Out, "\n%s tells how far it is.\n", doctor)
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not connected after %s", o.timeout))
		defer cancel()
	}
	fmt.Fprintf(s.Out, "\nWaiting for %s. Interrupt at any time: everything stays, and %s continues.\n\n", cluster, doctor)
	w := waiting{out: s.Out, ask: o.asking(cfg, cluster), told: map[string]string{}, declined: o.declined()}
	switch err := o.tick(ctx, func() (bool, error) { return w.look(ctx) }); {
	case err == nil:
		_, err := fmt.Fprintf(s.Out, "\n%s is connected.\n", cluster)
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted while waiting for: %s; everything stays, and %s continues", w.on, doctor)
	case ctx.Err() != nil:
		return fmt.Errorf("%w, waiting for: %s; everything stays, and %s continues", err, w.on, doctor)
	default:
		return err
	}
}

// asRunning is the configuration with the address the running server really listens on: it
// may have been given flags that this command was not.
func asRunning(ctx context.Context, cfg config.Config, cluster string) config.Config {
	client, err := apiclient.Dial(ctx, "", cfg.DataDir)
	if err != nil {
		return cfg // none runs; waiting says so
	}
	answer, err := apiclient.Ask(ctx, client, doctor.ConnectionRequest{Cluster: cluster})
	if err != nil || answer.Receiver.Listen == "" {
		return cfg // it cannot tell
	}
	cfg.Webhook.Listen = answer.Receiver.Listen
	return cfg
}

// asking asks the running server about the connection. Each time the server is looked for
// anew: it may be started, stopped and started again while somebody waits. The store is
// never opened here: that would keep the server from starting.
func (o *connectOptions) asking(cfg config.Config, cluster string) func(context.Context) ([]doctor.Step, error) {
	return func(ctx context.Context) ([]doctor.Step, error) {
		client, err := apiclient.Dial(ctx, "", cfg.DataDir)
		if errors.Is(err, apiclient.ErrNoServer) {
			return []doctor.Step{{ID: "server", Title: "The server runs", State: doctor.StateWaiting, Text: "None is running on " + config.Absolute(cfg.DataDir) + ".",
				Todo: doctor.Site{Config: cfg}.ServeCommand()}}, nil
		}
		if err != nil {
			return nil, err
		}
		defer client.Close()
		answer, err := apiclient.Ask(ctx, client, doctor.ConnectionRequest{Cluster: cluster})
		if err != nil {
			return nil, err
		}
		return append([]doctor.Step{{ID: "server", Title: "The server runs", State: doctor.StateDone}}, answer.Steps...), nil
	}
}

// declined are the steps that the command line says are not to come.
func (o *connectOptions) declined() map[string]bool {
	return map[string]bool{doctor.StepFollowed: o.noLog, doctor.StepCounted: o.noMetrics}
}

// waiting tells how a connection comes about, each change once.
type waiting struct {
	out      io.Writer
	ask      func(context.Context) ([]doctor.Step, error)
	declined map[string]bool   // steps nobody waits for
	told     map[string]string // by step: state and advice, which tell a change; texts count seconds
	on       string            // the first step that is not done
	idle     int               // looks since something was told
	lost     int               // looks in a row that failed
}

const (
	// remindAfter is how many looks without news there are between two reminders.
	remindAfter = 60
	// lostAfter is how many looks may fail in a row: a server that restarts is not asked again
	// at once.
	lostAfter = 30
)

// look asks once and tells what changed. It returns true when every step is done.
func (w *waiting) look(ctx context.Context) (bool, error) {
	steps, err := w.ask(ctx)
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
	w.idle++
	open := 0
	for _, s := range steps {
		if w.declined[s.ID] && s.State != doctor.StateDone {
			continue
		}
		if s.State != doctor.StateDone {
			if open++; open == 1 {
				w.on = s.Title
			}
		}
		key := s.State + s.Todo
		// What waits behind another step is told when its turn comes.
		if w.told[s.ID] == key || s.State == doctor.StateWaiting && open > 1 {
			continue
		}
		w.told[s.ID], w.idle = key, 0
		w.tell(s)
	}
	if open > 0 && w.idle >= remindAfter {
		w.idle = 0
		fmt.Fprintf(w.out, "still     %s\n", w.on)
	}
	return open == 0, nil
}

func (w *waiting) tell(s doctor.Step) {
	fmt.Fprintf(w.out, "%-9s %s", s.State, s.Title)
	if s.Text != "" {
		fmt.Fprintf(w.out, ": %s", safe.Text(s.Text))
	}
	fmt.Fprintln(w.out)
	if s.Todo == "" {
		return
	}
	for line := range strings.SplitSeq(s.Todo, "\n") {
		fmt.Fprintf(w.out, "          %s\n", safe.Text(line))
	}
}
