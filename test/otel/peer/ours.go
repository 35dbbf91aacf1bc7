package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// runOurs has `retrial bench pipeline` post the events to a server of its own on the same
// Kafka and a chserver of its own. It checks by itself that everything is stored once and
// judged as `retrial evaluate` judges it.
func runOurs(ctx context.Context, o options) (f figure, err error) {
	store, err := startEngine(ctx, o, "ours")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, store.end()) }()
	args := []string{"bench", "pipeline", "--repeat", strconv.Itoa(o.repeat), "--batch", strconv.Itoa(o.batch), "--connections",
		strconv.Itoa(o.connections),
		"--count-pid", strconv.Itoa(store.Process.Pid), "-o", "json"}
	if o.events != "" {
		args = append(args, "--events", o.events, "--state", o.state)
	}
	args = append(args, "--", "--kafka-brokers", o.brokers, "--kafka-replication", "1", "--kafka-partitions", strconv.Itoa(partitions),
		"--clickhouse-dsn", store.dsn(),
		"--kafka-topic-prefix", fmt.Sprintf("ours-%d.", os.Getpid()))
	cmd := exec.CommandContext(ctx, o.retrial, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return f, fmt.Errorf("%w\n%s", err, out.String())
	}
	var r struct {
		Events     int64              `json:"events"`
		Seconds    float64            `json:"seconds"`
		CPU        float64            `json:"cpu_us_per_event"`
		Rooms      map[string]float64 `json:"rooms"`
		Lost       int64              `json:"lost"`
		Duplicates int64              `json:"duplicates"`
		Verdicts   map[string]int64   `json:"verdicts"`
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return f, fmt.Errorf("read its figures: %w\n%s", err, out.String())
	}
	spent := func(us float64) time.Duration {
		return time.Duration(us * float64(r.Events) * float64(time.Microsecond))
	}
	engine := r.Rooms["engine"] // what is beyond the server's profile: the store's process
	f = figure{events: r.Events, stored: r.Events - r.Lost, cpu: spent(r.CPU - engine), engine: spent(engine),
		wall: time.Duration(r.Seconds * float64(time.Second))}
	f.rows = fmt.Sprintf("verdicts %v, lost %d, duplicates %d", r.Verdicts, r.Lost, r.Duplicates)
	if r.Lost != 0 || r.Duplicates != 0 {
		return f, errors.New("not every event is stored once: " + f.rows)
	}
	return f, nil
}
