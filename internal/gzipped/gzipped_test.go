package gzipped_test

import (
	"testing"

	"github.com/retrial-io/retrial/internal/gzipped"
)

func TestAccepted(t *testing.T) {
	for header, want := range map[string]bool{
		"gzip": true, "gzip, deflate, br, zstd": true, "br;q=1, GZIP ; q=0.001": true, "deflate,gzip;q=1.0": true,
		"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip; q = 0.000": false, "*": false, "xgzip": false,
	} {
		if got := gzipped.Accepted(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
