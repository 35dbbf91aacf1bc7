package storage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/retrial-io/retrial/storage"
)

// TestBlockIsStable holds what a block is sent as to what releases before wrote: a correction
// takes a stored row back by its version, which every release has to compute alike.
func TestBlockIsStable(t *testing.T) {
	in := append(rows(t, "c", 3), hostile(t)...)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range in {
		if in[i].Verdict != nil && i%2 == 0 {
			in[i].Verdict = verdictFrom(r)
		}
	}
	data, err := storage.Encoded(in, 26) // what came later is not there
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got, want := hex.EncodeToString(sum[:8]), "402443367f9c9f76"; got != want {
		t.Errorf("%d rows are sent as %s, %d bytes; want %s", len(in), got, len(data), want)
	}
}
