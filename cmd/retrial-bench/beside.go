package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
)

// besides are stores of one engine, each in a database of its own, that are asked the same in turn.
type besides struct {
	engine *embedded.Engine
	stores []*storage.Store
}

// openBesides opens stores in new databases of these names; done closes them and removes their files.
func openBesides(ctx context.Context, databases []string) (b besides, done func() error, err error) {
	dir, err := os.MkdirTemp("", "retrial-bench-")
	if err != nil {
		return b, nil, err
	}
	closing := []func() error{func() error { return os.RemoveAll(dir) }}
	done = func() (err error) {
		for i := len(closing) - 1; i >= 0; i-- {
			err = errors.Join(err, closing[i]())
		}
		return err
	}
	if b.engine, err = embedded.Open(embedded.Config{Path: filepath.Join(dir, "clickhouse"), MaxMemory: 4 << 30}); err != nil {
		return b, nil, errors.Join(err, done())
	}
	closing = append(closing, b.engine.Close)
	for _, database := range databases {
		s, err := storage.Open(ctx, storage.Config{Transport: b.engine, Database: database})
		if err != nil {
			return b, nil, errors.Join(err, done())
		}
		b.stores, closing = append(b.stores, s), append(closing, s.Close)
	}
	return b, done, nil
}

// asked is a question, and what it answers about the one cluster of a store.
type asked struct {
	name string
	ask  func(s *storage.Store) (answer any, err error)
}

// askedByName is a question of docs/questions.md about the cluster.
func askedByName(ctx context.Context, name string, values map[string]string) asked {
	return asked{name, func(s *storage.Store) (any, error) {
		_, rows, err := s.Ask(ctx, name, benchCluster, values)
		return rows, err
	}}
}

// inTurn asks a question in all stores, several times in turn, and returns what it cost in each, and the answers.
func (b *besides) inTurn(ctx context.Context, q asked) (costs []questionCost, answers []string, err error) {
	samples := make([][]questionCost, len(b.stores))
	costs, answers = make([]questionCost, len(b.stores)), make([]string, len(b.stores))
	for range askTimes {
		for i, s := range b.stores {
			var answer any
			once, err := askOnce(ctx, b.engine, func() (err error) { answer, err = q.ask(s); return err })
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", q.name, err)
			}
			samples[i], answers[i] = append(samples[i], once), fmt.Sprintf("%+v", answer)
		}
	}
	for i := range samples {
		costs[i] = median(samples[i])
	}
	return costs, answers, nil
}
