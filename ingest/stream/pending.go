package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pending is what a commit records besides its offset: the range of offsets announced for
// storing, and how far policy has been applied to what this partition stored before.
// It travels in the commit's metadata, of which Kafka keeps 4096 bytes by default.
type Pending struct {
	// First and Last are the announced range, both inclusive; both are -1 if none is announced.
	First, Last int64
	// PolicyOffsets gives, per partition of TopicPolicy, the offset below which all is reflected in what this partition stored. May be nil.
	PolicyOffsets map[int32]int64
	// Layout is that of the last barrier below the offset, zero if there was none.
	Layout Layout
}

// NoPending returns a Pending without a range.
func NoPending(policy map[int32]int64) Pending {
	return Pending{First: -1, Last: -1, PolicyOffsets: policy}
}

// anew is what is left of it when the log is another one: the layout is the topic's.
func (p Pending) anew() Pending { return Pending{First: -1, Last: -1, Layout: p.Layout} }

// Has reports whether a range is announced.
func (p Pending) Has() bool { return p.First >= 0 && p.Last >= p.First }

// maxMetadata is the default offset.metadata.max.bytes of a broker.
const maxMetadata = 4096

// metadataVersion starts every metadata string. A string that starts differently was not
// written by this package.
const metadataVersion = "r1"

var errMetadata = errors.New("commit metadata is not Retrial's")

type metadata struct {
	epoch   uint32
	pending Pending
	// done is the fingerprint of the last record below the offset, announced that of pending.Last;
	// 0 if not known.
	done, announced fingerprint
}

// encode renders the metadata: "r1;e=<epoch>", ";p=<first>-<last>", ";r=<done>-<announced>" in hexadecimal, ";l=" and the layout,
// ";o=<partition>:<offset>,...".
func (m metadata) encode() (string, error) {
	p := m.pending
	b := fmt.Appendf(nil, "%s;e=%d", metadataVersion, m.epoch)
	if p.Has() {
		b = fmt.Appendf(b, ";p=%d-%d", p.First, p.Last)
	}
	if m.done != 0 || m.announced != 0 {
		b = fmt.Appendf(b, ";r=%x-%x", uint64(m.done), uint64(m.announced))
	}
	if p.Layout != (Layout{}) {
		b = append(append(b, ";l="...), p.Layout.encode()...)
	}
	before := ";o="
	for _, part := range slices.Sorted(maps.Keys(p.PolicyOffsets)) {
		b = fmt.Appendf(b, "%s%d:%d", before, part, p.PolicyOffsets[part])
		before = ","
	}
	if len(b) > maxMetadata {
		return "", fmt.Errorf("encode commit metadata: it has %d bytes, a broker keeps %d", len(b), maxMetadata)
	}
	return string(b), nil
}

// decodeMetadata reads what encode wrote. Unknown fields are skipped.
func decodeMetadata(s string) (metadata, error) {
	none := metadata{pending: NoPending(nil)}
	version, rest, _ := strings.Cut(s, ";")
	if version != metadataVersion {
		return none, errMetadata
	}
	m := none
	for field := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(field, "=")
		if err := m.decode(name, value); err != nil {
			return none, fmt.Errorf("%w: field %q: %w", errMetadata, name, err)
		}
	}
	return m, nil
}

func (m *metadata) decode(name, value string) (err error) {
	switch name {
	case "e":
		e, err := strconv.ParseUint(value, 10, 32)
		m.epoch = uint32(e)
		return err
	case "p":
		first, last, _ := strings.Cut(value, "-")
		if m.pending.First, err = strconv.ParseInt(first, 10, 64); err == nil {
			m.pending.Last, err = strconv.ParseInt(last, 10, 64)
		}
	case "r":
		done, announced, _ := strings.Cut(value, "-")
		var d, a uint64
		if d, err = strconv.ParseUint(done, 16, 64); err == nil {
			a, err = strconv.ParseUint(announced, 16, 64)
		}
		m.done, m.announced = fingerprint(d), fingerprint(a)
	case "l":
		m.pending.Layout, err = decodeLayout(value)
	case "o":
		m.pending.PolicyOffsets, err = decodeOffsets(value)
	}
	return err
}

func decodeOffsets(s string) (map[int32]int64, error) {
	m := map[int32]int64{}
	for pair := range strings.SplitSeq(s, ",") {
		part, off, _ := strings.Cut(pair, ":")
		k, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return nil, err
		}
		v, err := strconv.ParseInt(off, 10, 64)
		if err != nil {
			return nil, err
		}
		m[int32(k)] = v
	}
	return m, nil
}

// VerifyCommit judges a commit against the end of the partition's log, for
// embedded.Config.Verify: a commit that has consumed or announced offsets the log does not
// have is replaced by one with the next epoch.
func VerifyCommit(committed int64, commit string, highWatermark int64) (replacement string, ok bool) {
	m, err := decodeMetadata(commit)
	if err != nil {
		return "", committed <= highWatermark
	}
	if !beyond(committed, m.pending, highWatermark) {
		return "", true
	}
	replacement, err = metadata{epoch: m.epoch + 1, pending: m.pending.anew()}.encode()
	if err != nil {
		return "", false
	}
	return replacement, false
}

// beyond reports whether a commit needs offsets at or above the end of the log.
func beyond(committed int64, p Pending, highWatermark int64) bool {
	return committed > highWatermark || p.Has() && p.Last >= highWatermark
}
