package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// peersResult is what `bench peers -o json` prints.
type peersResult struct {
	Machine    string            `json:"machine"`
	LoadBefore string            `json:"load_before"`
	LoadAfter  string            `json:"load_after"`
	Versions   []string          `json:"versions"`
	Missing    map[string]string `json:"missing"` // why somebody was not measured
	Figures    []*peerFigure     `json:"figures"`
}

// peerFigure is what one of them took at one rate: medians, and the processor time of each round.
type peerFigure struct {
	Peer   string    `json:"peer"`
	Rate   float64   `json:"rate"` // events a second; 0: as many as were accepted
	Events int64     `json:"events"`
	CPU    float64   `json:"cpu_us_per_event"`
	Each   []float64 `json:"each_cpu_us_per_event"`
	PeakMB float64   `json:"peak_rss_mb"`
	Disk   float64   `json:"disk_bytes_per_event"`
	runs   []one
}

// add takes the figures of another round.
func (f *peerFigure) add(o one) {
	f.runs = append(f.runs, o)
	f.Events, f.Each = o.events, append(f.Each, o.cpu)
	f.CPU = medianOf(f.runs, func(o one) float64 { return o.cpu })
	f.PeakMB = medianOf(f.runs, func(o one) float64 { return o.memory })
	f.Disk = medianOf(f.runs, func(o one) float64 { return o.disk })
}

// medianOf returns the median of what of says of each.
func medianOf[T any](all []T, of func(T) float64) float64 {
	list := make([]float64, len(all))
	for i, v := range all {
		list[i] = of(v)
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// ownBeside returns our figure to compare a peer's with: on the same Kafka as a collector, or as it
// is without a flag.
func (r *peersResult) ownBeside(f *peerFigure) *peerFigure {
	own := ownName
	if strings.HasPrefix(f.Peer, collectorName) {
		own = ownKafkaName
	}
	for _, o := range r.Figures {
		if o.Peer == own && o.Rate == f.Rate {
			return o
		}
	}
	return nil
}

func rateName(rate float64) string {
	if rate == 0 {
		return "saturation"
	}
	return strconv.FormatFloat(rate, 'g', -1, 64) + " events/s"
}

func (r *peersResult) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s; load %s before, %s after\n%s\n", r.Machine, r.LoadBefore, r.LoadAfter, strings.Join(r.Versions, ", "))
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(w, "%s is not measured: %s; its last figures are in docs/peer.md\n", name, r.Missing[name])
	}
	var rates []float64
	for _, f := range r.Figures {
		if !slices.Contains(rates, f.Rate) {
			rates = append(rates, f.Rate)
		}
	}
	for _, rate := range rates {
		fmt.Fprintf(w, "\n%s\tCPU of an event, µs\tleast to most\tpeak memory, MB\ton disk, bytes an event\tevents\n", rateName(rate))
		for _, f := range r.Figures {
			if f.Rate == rate {
				fmt.Fprintf(w, "%s\t%.1f\t%.1f to %.1f\t%.0f\t%.0f\t%d\n", f.Peer, f.CPU, slices.Min(f.Each), slices.Max(f.Each), f.PeakMB,
					f.Disk, f.Events)
			}
		}
	}
	fmt.Fprintln(w)
	for _, f := range r.Figures {
		if own := r.ownBeside(f); own != nil && own.Peer != f.Peer && !strings.HasPrefix(f.Peer, ownName) {
			fmt.Fprintf(w, "%s ÷ %s at %s: CPU %.2f, memory %.2f, disk %.2f\n", own.Peer, f.Peer, rateName(f.Rate), own.CPU/f.CPU,
				own.PeakMB/f.PeakMB, own.Disk/f.Disk)
		}
	}
	return w.Flush()
}

// describeMachine names the processor, how many there are, the memory, the kernel and Go.
func describeMachine() string {
	return fmt.Sprintf("%s, %d processors, %.0f GiB, Linux %s, %s", valueIn("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		numeric(valueIn("/proc/meminfo", "MemTotal"))/(1<<20), firstWord("/proc/sys/kernel/osrelease"), runtime.Version())
}

// loadAverage returns how many tasks wanted a processor in the last minute.
func loadAverage() string { return firstWord("/proc/loadavg") }

// valueIn returns what follows "name:" in a file of the kernel's.
func valueIn(file, name string) string {
	text, _ := os.ReadFile(file) // a machine without it is described without it
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstWord(file string) string {
	text, _ := os.ReadFile(file)
	word, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return word
}

// versionOf returns the version of a program: its module's, or that of the collector's core in it.
func versionOf(program string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "of an unknown version"
	}
	for _, dep := range info.Deps {
		if dep.Path == "go.opentelemetry.io/collector/otelcol" {
			return dep.Version
		}
	}
	return info.Main.Version
}
