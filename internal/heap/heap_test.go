package heap

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name           string
		live, headroom uint64
		want           int
	}{
		{"not collected yet", 0, 512 * mib, 3200},
		{"small: grows by the headroom", 64 * mib, 512 * mib, 800},
		{"as large as the headroom: doubles", 512 * mib, 512 * mib, 100},
		{"most of it: grows by the headroom", 96 * mib, 48 * mib, 50},
		{"larger: nearly doubles", 4096 * mib, 512 * mib, 98},
		{"no headroom: by what is above a few", 128 * mib, 0, 50},
		{"bounded", mib, 1 << 40, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percent(c.live, c.headroom); got != c.want {
				t.Errorf("percent(%d, %d) = %d, want %d", c.live, c.headroom, got, c.want)
			}
		})
	}
}

// TestHeadroom plays what a server allocates in each interval: steadily, in a burst, and hardly anything.
func TestHeadroom(t *testing.T) {
	const mib = 1 << 20
	p := pace{most: 512 * mib}
	var allocated uint64
	quiet := 0
	play := func(name string, bytes, want uint64) {
		t.Helper()
		allocated += bytes
		if got := p.headroom(allocated); got != want {
			t.Errorf("%s: headroom %d MiB, want %d", name, got/mib, want/mib)
		}
	}
	end := func() { p.turn(allocated) }
	play("start", 3*mib, least)
	end()
	play("little", mib, least)
	end()
	end()
	end()
	for _, want := range []uint64{40, 40, 80, 40, 80} { // a block every other interval
		play("blocks and rests", 40*mib*uint64(1-quiet), want*mib)
		quiet = 1 - quiet
		end()
	}
	for _, want := range []uint64{80, 120, 120} {
		play("steady", 40*mib, want*mib)
		end()
	}
	end()
	end()
	for _, want := range []uint64{80, 160, 320, 512, 512} {
		play("a burst that goes on", 600*mib, want*mib)
		end()
	}
	end()
	play("two intervals later", 0, 512*mib)
	end()
	play("an interval later", 0, least)
	p.most = mib
	play("where little is the most", 40*mib, mib)
}

// TestAfterCollections holds the signal to coming again after every collection.
func TestAfterCollections(t *testing.T) {
	collected := afterCollections(t.Context())
	for range 3 {
		runtime.GC()
		<-collected
	}
}

// TestPaceGivesBack holds Pace to leaving the process as it found it, and to leaving it alone
// when the environment decides.
func TestPaceGivesBack(t *testing.T) {
	const before = 150
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct{ name, variable string }{
		{"paced", ""}, {"GOGC is set", "GOGC"}, {"GOMEMLIMIT is set", "GOMEMLIMIT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			if c.variable != "" {
				t.Setenv(c.variable, "123")
			}
			Pace(ended, 1<<30)
			if now := debug.SetGCPercent(before); now != before {
				t.Errorf("the percentage is %d afterwards, want %d", now, before)
			}
		})
	}
}
