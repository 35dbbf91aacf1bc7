package main

import (
	"context"
	"fmt"
	"time"
)

// ticker calls again, with a pause before each call, until ctx ends or it returns true.
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
func (o *connectOptions) run(ctx context.Context, s streams, cluster string) error {
	cfg, err := o.flags.Load()
	if err != nil {
		return exitCode{exitUsage, err}
	}
	p, err := o.prepare(cfg, cluster)
	if err != nil {
		return err
	}
	// A folder that cannot be written is found before a cluster is registered.
	if err := checkFolder(p.Dir); err != nil {
		return err
	}
	a, err := openIdentity(cfg)
	if err != nil {
		return err
	}
	cred, fresh, err := register(a, cluster)
	if err != nil {
		return err
	}
	p.Fresh, p.Expires = fresh, cred.Expires.Format(time.DateOnly)
	if err := p.reach(a); err != nil {
		return err
	}
	files, err := p.files(cred)
	if err != nil {
		return err
	}
	if p.Kept, err = writeFolder(p.Dir, files); err != nil {
		return err
	}
	steps := p.steps()
	if _, err := writeFolder(p.Dir, []connectFile{{name: fileSteps, content: steps, mode: 0o644}}); err != nil {
		return err
	}
	if _, err := s.out.Write(steps); err != nil {
		return fmt.Errorf("print the steps: %w", err)
	}
	if o.noWait {
		fmt.Fprintf(s.out, "\n`retrial doctor %s%s` tells how far it is.\n", cluster, p.dataDir())
		return nil
	}
	return nil
}
