// Command chserver serves the embedded ClickHouse engine over HTTP, so that several processes
// can use one store with --clickhouse-dsn. It is for tests and measurements; a production
// store is a ClickHouse server.
//
//	go run ./test/chserver/cmd/chserver --path DIR --user retrial:secret
//
// It prints its URL once it listens and ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/retrial-io/retrial/test/chserver"
)

// stopWithin is how long running queries may take to end once a stop is asked for.
const stopWithin = 20 * time.Second

func main() {
	if err := serve(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chserver:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	var cfg chserver.Config
	flags := flag.NewFlagSet("chserver", flag.ContinueOnError)
	flags.StringVar(&cfg.Engine.Path, "path", "", "folder of the store's files; made when missing")
	flags.StringVar(&cfg.Engine.Library, "library", "", "path of libchdb.so; empty: where scripts/fetch-libchdb.sh puts it")
	flags.Int64Var(&cfg.Engine.MaxMemory, "max-memory", 0, "bytes the engine may allocate; 0: 1.5 GiB")
	flags.IntVar(&cfg.Engine.MaxThreads, "threads", 0, "threads of one statement; 0: 2")
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8123", "address to listen on")
	cert := flags.String("tls-cert", "", "PEM file with the certificate; with --tls-key it serves HTTPS")
	key := flags.String("tls-key", "", "PEM file with the certificate's key")
	user := func(readOnly int) func(string) error {
		return func(v string) error {
			name, password, ok := strings.Cut(v, ":")
			if !ok || name == "" {
				return errors.New("write it as name:password")
			}
			cfg.Users = append(cfg.Users, chserver.User{Name: name, Password: password, ReadOnly: readOnly})
			return nil
		}
	}
	flags.Func("user", "name:password of a user with all rights; may be repeated", user(0))
	flags.Func("read-only", "name:password of a user who may only read; may be repeated", user(2))
	flags.Func("read-only-strict", "the same, who may not change settings either", user(1))
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.Engine.Path == "":
		return errors.New("name the folder of the store with --path")
	case len(cfg.Users) == 0:
		return errors.New("nobody could log in: add --user name:password")
	case (*cert == "") != (*key == ""):
		return errors.New("--tls-cert and --tls-key: set both or neither")
	}
	scheme := "http"
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		cfg.TLS, scheme = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, "https"
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	server, err := chserver.Listen(cfg)
	if err != nil {
		return err
	}
	fmt.Printf("%s://%s\n", scheme, server.Addr())
	<-ctx.Done()
	stop, cancelStop := context.WithTimeout(context.Background(), stopWithin)
	defer cancelStop()
	return server.Shutdown(stop)
}
