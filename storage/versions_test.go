package storage_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/retrial-io/retrial/storage"
)

// TestVersionsAreStable holds the versions of rows to what releases before computed: a correction takes a
// stored row back by its version. What admission plugins answered is as far as those knew it.
func TestVersionsAreStable(t *testing.T) {
	in := append(rows(t, "c", 3), hostile(t)...)
	r := rand.New(rand.NewPCG(1, 1))
	var all []byte
	for i := range in {
		if v := in[i].Verdict; v != nil {
			if i%2 == 0 {
				v = verdictFrom(r)
			}
			for j := range v.Admission.Answers { // as recorded, and not more
				a := &v.Admission.Answers[j]
				if a.Reason = ""; a.Code != 0 {
					a.Code = in[i].Event.Code()
				}
			}
			in[i].Verdict = v
		}
		version, err := storage.VersionOf(&in[i])
		if err != nil {
			t.Fatal(err)
		}
		all = binary.LittleEndian.AppendUint64(all, version)
	}
	sum := sha256.Sum256(all)
	if got, want := hex.EncodeToString(sum[:8]), "a75532809367603c"; got != want {
		t.Errorf("%d rows have versions %s, want %s", len(in), got, want)
	}
}
