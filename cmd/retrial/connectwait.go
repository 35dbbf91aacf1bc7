package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
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
	p, err := o.prepare(doctor.AsRunning(ctx, cfg, cluster), cluster)
	if err != nil {
		return err
	}
	// A folder that cannot be written is found before a cluster is registered.
	if err := doctor.CheckFolder(p.Dir); err != nil {
		return err
	}
	a, err := server.OpenIdentity(cfg)
	if err != nil {
		return err
	}
	cred, fresh, err := doctor.Register(a, cluster)
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
	if p.Kept, err = doctor.WriteFolder(p.Dir, files); err != nil {
		return err
	}
	steps := p.Steps()
	if _, err := doctor.WriteFolder(p.Dir, []doctor.File{{Name: doctor.FileSteps, Content: steps, Mode: 0o644}}); err != nil {
		return err
	}
	if _, err := s.Out.Write(steps); err != nil {
		return fmt.Errorf("print the steps: %w", err)
	}
	later := "`retrial doctor " + cluster + p.DataDir() + "`"
	if o.noWait {
		_, err := fmt.Fprintf(s.Out, "\n%s tells how far it is.\n", later)
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not connected after %s", o.timeout))
		defer cancel()
	}
	fmt.Fprintf(s.Out, "\nWaiting for %s. Interrupt at any time: everything stays, and %s continues.\n\n", cluster, later)
	w := doctor.Waiting{Out: s.Out, Ask: doctor.RunningSteps(cfg, cluster), Declined: o.declined()}
	switch err := o.tick(ctx, func() (bool, error) { return w.Look(ctx) }); {
	case err == nil:
		_, err := fmt.Fprintf(s.Out, "\n%s is connected.\n", cluster)
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted while waiting for: %s; everything stays, and %s continues", w.On, later)
	case ctx.Err() != nil:
		return fmt.Errorf("%w, waiting for: %s; everything stays, and %s continues", err, w.On, later)
	default:
		return err
	}
}

// declined are the steps that the command line says are not to come.
func (o *connectOptions) declined() map[string]bool {
	return map[string]bool{doctor.StepFollowed: o.noLog, doctor.StepCounted: o.noMetrics}
}
