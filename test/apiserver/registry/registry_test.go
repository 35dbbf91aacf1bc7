package registry

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestState plays sequences to the registry and wants what the state says of each moment to be
// what the registry held. ORACLE_STATE is how many, ORACLE_SEED the first seed.
func TestState(t *testing.T) {
	n, seed := number(t, "ORACLE_STATE", 400), number(t, "ORACLE_SEED", 1)
	const workers = 2
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, err := newServer("../../../deploy/audit-policy.yaml")
				if err != nil {
					t.Fatal(err)
				}
				total := map[string]counts{}
				failures := 0
				for i := w; i < n && failures < number(t, "ORACLE_FAILURES", 5); i += workers {
					seq := generate(uint64(seed + i))
					j := run(t, s, seq)
					for k, c := range j.counts {
						total[k] = total[k].plus(c)
					}
					if len(j.found) == 0 {
						continue
					}
					failures++
					text := func(j *judge) string {
						_, short, _ := strings.Cut(j.found[0].String(), ": ")
						if f := strings.Fields(short); len(f) > 3 {
							return j.found[0].object[:4] + strings.Join(f[:3], " ")
						}
						return short
					}
					kind := text(j)
					small := shrink(seq, func(s2 sequence) bool {
						j := run(t, s, s2)
						return len(j.found) > 0 && text(j) == kind
					})
					j = run(t, s, small)
					t.Errorf("seed %d: %v\n%s", seed+i, j.found, small)
				}
				t.Log(total)
			})
		})
	}
}

func run(t *testing.T, s *server, seq sequence) *judge {
	t.Helper()
	h, err := s.play(seq)
	if err != nil {
		t.Fatalf("%v\n%s", err, seq)
	}
	return compare(h, seq, nil)
}
