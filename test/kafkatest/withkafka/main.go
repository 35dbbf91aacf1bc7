// Command withkafka starts a real Apache Kafka, runs a command against it, and ends with the
// command's exit code:
//
//	withkafka -version 4.1.2 -access SCRAM-SHA-512 go test ./ingest/stream
//	withkafka -heap 1024 bin/retrial bench pipeline -- {} --kafka-replication 1
//
// The command finds the cluster in its environment (kafkatest.FromEnviron); an argument {}
// becomes the flags with which retrial reaches it. Nothing of Kafka is left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/retrial-io/retrial/test/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withkafka:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context) (int, error) {
	var cfg kafkatest.Config
	flag.StringVar(&cfg.Version, "version", kafkatest.DefaultVersion, "`version` of Kafka")
	flag.IntVar(&cfg.Brokers, "brokers", 1, "number of brokers")
	flag.IntVar(&cfg.HeapMB, "heap", 256, "`MB` of heap for each broker")
	access := flag.String("access", "PLAINTEXT", "listener to use: PLAINTEXT, or SASL_SSL by its `mechanism`: PLAIN, "+
		"SCRAM-SHA-256, SCRAM-SHA-512")
	prefix := flag.String("grant", "", "`prefix` of further topics and groups on which the product's rights are granted")
	flag.Parse()
	if flag.NArg() == 0 {
		return 2, errors.New("no command given")
	}
	var err error
	if cfg.Dir, err = os.MkdirTemp("", "withkafka-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(cfg.Dir)
	kafka, err := kafkatest.New(cfg)
	if err != nil {
		return 1, err
	}
	defer kafka.Close()
	if err := kafka.Start(ctx); err != nil {
		return 1, err
	}
	rights := kafkatest.Needed("")
	for _, r := range kafkatest.Needed("") {
		if r.Prefix = *prefix; r.Prefix != "" {
			rights = append(rights, r)
		}
	}
	if err := kafka.Grant(ctx, rights...); err != nil {
		return 1, err
	}
	a := kafka.Plaintext()
	if *access != "PLAINTEXT" {
		a = kafka.SASL(*access)
	}
	fmt.Fprintf(os.Stderr, "withkafka: Kafka %s serves %s at %v\n", kafka.Version(), *access, a.Brokers)
	args := flag.Args()
	if i := slices.Index(args, "{}"); i >= 0 {
		args = slices.Replace(args, i, i+1, a.Flags()...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), a.Environ()...)
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	if cpu, err := kafka.Nodes[0].CPU(); err == nil {
		fmt.Fprintf(os.Stderr, "withkafka: the (first) broker has used %.1f s of processor time since its start\n", cpu.Seconds())
	}
	return 0, nil
}
