package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pending is what a commit says besides its offset: the range of offsets announced for
// storing, and how far policy has been applied to what this partition stored before.
// It travels in the commit's metadata, of which Kafka keeps 4096 bytes by default.
type Pending struct {
	// First and Last are the announced range, both included; both -1 when none is.
	First, Last int64
	// PolicyOffsets gives, per partition of TopicPolicy, the offset below which every
	// policy record is reflected in the rows this partition has stored. May be nil.
	PolicyOffsets map[int32]int64
}

// NoPending is a Pending without a range.
func NoPending(policy map[int32]int64) Pending {
	return Pending{First: -1, Last: -1, PolicyOffsets: policy}
}

// Has reports whether a range is announced.
func (p Pending) Has() bool { return p.First >= 0 && p.Last >= p.First }

// maxMetadata is the default offset.metadata.max.bytes of a broker.
const maxMetadata = 4096

// metadataVersion starts every metadata string. A string that starts otherwise was not
// written by this package.
const metadataVersion = "r1"

var errMetadata = errors.New("commit metadata is not Retrial's")

// encodeMetadata renders the metadata of a commit: "r1;e=<epoch>", then
// ";p=<first>-<last>" and ";o=<partition>:<offset>,..." when there are any.
func encodeMetadata(epoch uint32, p Pending) (string, error) {
	b := make([]byte, 0, 64)
	b = append(b, metadataVersion...)
	b = append(b, ";e="...)
	b = strconv.AppendUint(b, uint64(epoch), 10)
	if p.Has() {
		b = append(b, ";p="...)
		b = strconv.AppendInt(b, p.First, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, p.Last, 10)
	}
	for i, part := range slices.Sorted(maps.Keys(p.PolicyOffsets)) {
		if i == 0 {
			b = append(b, ";o="...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(part), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, p.PolicyOffsets[part], 10)
	}
	if len(b) > maxMetadata {
		return "", fmt.Errorf("encode commit metadata: %d bytes, a broker keeps %d", len(b), maxMetadata)
	}
	return string(b), nil
}

// decodeMetadata reads what encodeMetadata wrote. Fields it does not know are skipped.
func decodeMetadata(s string) (epoch uint32, p Pending, err error) {
	p = NoPending(nil)
	version, rest, _ := strings.Cut(s, ";")
	if version != metadataVersion {
		return 0, p, errMetadata
	}
	for field := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "e":
			var e uint64
			if e, err = strconv.ParseUint(value, 10, 32); err == nil {
				epoch = uint32(e)
			}
		case "p":
			first, last, ok := strings.Cut(value, "-")
			if !ok {
				return 0, NoPending(nil), errMetadata
			}
			if p.First, err = strconv.ParseInt(first, 10, 64); err == nil {
				p.Last, err = strconv.ParseInt(last, 10, 64)
			}
		case "o":
			p.PolicyOffsets, err = decodeOffsets(value)
		}
		if err != nil {
			return 0, NoPending(nil), fmt.Errorf("%w: field %q: %w", errMetadata, name, err)
		}
	}
	return epoch, p, nil
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
func VerifyCommit(committed int64, metadata string, highWatermark int64) (replacement string, ok bool) {
	epoch, p, err := decodeMetadata(metadata)
	if err != nil {
		return "", committed <= highWatermark
	}
	if !beyond(committed, p, highWatermark) {
		return "", true
	}
	replacement, err = encodeMetadata(epoch+1, NoPending(nil))
	if err != nil {
		return "", false
	}
	return replacement, false
}

// beyond reports whether a commit needs offsets at or above the end of the log.
func beyond(committed int64, p Pending, highWatermark int64) bool {
	return committed > highWatermark || p.Has() && p.Last >= highWatermark
}
