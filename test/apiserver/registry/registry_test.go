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

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

const policyFile = "../../../deploy/audit-policy.yaml"

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil // they pace themselves by a clock that each server has its own of
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
// what the registry held. ORACLE_STATE is how many, ORACLE_SEED the first seed, ORACLE_OVERLAP how many
// requests of a hundred begin while the one before is under way.
func TestState(t *testing.T) {
	n, seed, overlap := number(t, "ORACLE_STATE", 1000), number(t, "ORACLE_SEED", 1), number(t, "ORACLE_OVERLAP", usualOverlap)
	const workers = 2
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, err := newServer(policyFile)
				if err != nil {
					t.Fatal(err)
				}
				total := map[string]counts{}
				failures := 0
				for i := w; i < n && failures < number(t, "ORACLE_FAILURES", 5); i += workers {
					seq := generate(uint64(seed+i), overlap)
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

// TestSequence plays one sequence, that of the file ORACLE_SEQUENCE, and tells what was learnt.
func TestSequence(t *testing.T) {
	file := os.Getenv("ORACLE_SEQUENCE")
	if file == "" {
		t.Skip("ORACLE_SEQUENCE names no file")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := newServer(policyFile)
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.play(seq)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range h.news {
			for _, o := range n.obs {
				if o.Name != "" || !o.Complete {
					t.Logf("step %d: %s", n.step, o.Append(nil))
				}
			}
		}
		for _, d := range compare(h, seq, nil).found {
			t.Error(d)
		}
	})
}

func run(t *testing.T, s *server, seq sequence) *judge {
	t.Helper()
	h, err := s.play(seq)
	if err != nil {
		t.Fatalf("%v\n%s", err, seq)
	}
	return compare(h, seq, nil)
}
