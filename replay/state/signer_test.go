package state

import (
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

func TestSigner(t *testing.T) {
	snap, _, err := observe.ReadSnapshot(strings.NewReader(`{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"c","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"},
		 "spec":{"signerName":"example.com/s","request":"","usages":[]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	listed := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	snap.Kinds, snap.Began, snap.Ended = kept.Resources(), listed, listed
	s := New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, signer string
		at           time.Time
		known        Known
	}{
		{"c", "example.com/s", listed, Present},
		{"other", "", listed, Absent},
		{"other", "", listed.Add(-2 * time.Hour), Unknown},
	} {
		if signer, known := s.Signer(tc.name, tc.at); signer != tc.signer || known != tc.known {
			t.Errorf("%s at %s: %q %v, want %q %v", tc.name, tc.at, signer, known, tc.signer, tc.known)
		}
	}
}
