package embedded

import (
	"slices"
	"strings"
	"testing"
)

func TestUntouched(t *testing.T) {
	const smaps = `1000-2000 r--p 00000000 fe:00 12 /lib/libchdb.so
Rss:                  44 kB
Anonymous:             0 kB
2000-3000 r-xp 00001000 fe:00 12 /lib/libchdb.so
Anonymous:             0 kB
3000-4000 r--p 00002000 fe:00 12 /lib/libchdb.so
Anonymous:             4 kB
4000-5000 rw-p 00003000 fe:00 12 /lib/libchdb.so
Anonymous:             0 kB
5000-6000 r--p 00000000 fe:00 13 /lib/libc.so
Anonymous:             0 kB
6000-7000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7000-8000 r--p 00000000 fe:00 12 /lib/libchdb.so
Rss:                   0 kB
`
	got, err := untouched(strings.NewReader(smaps), "/lib/libchdb.so")
	if err != nil {
		t.Fatal(err)
	}
	want := []span{{0x1000, 0x2000}, {0x2000, 0x3000}} // of the last it is not told whether it was changed
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if _, err := untouched(strings.NewReader("10-zz r--p 0 fe:00 12 /lib/libchdb.so\n"), "/lib/libchdb.so"); err == nil {
		t.Error("addresses that are none are accepted")
	}
}
