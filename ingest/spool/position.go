package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

const (
	positionName = "position"
	positionTemp = "position.new"
)

// position is how far the drainer has got: everything before it is in Kafka.
type position struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
	// Keep means that the segment is not deleted when it is finished: something in it could
	// not be sent.
	Keep bool `json:"keep,omitempty"`
}

// signed is the position as it is written, with its checksum.
type signed struct {
	position
	Sum uint32 `json:"sum"`
}

func (p position) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d %t", p.Segment, p.Offset, p.Keep), castagnoli)
}

// readPosition returns the position written last. If it cannot be read, problem says why and the
// position is the beginning: sending again does no harm.
func readPosition(dir FS) (p position, problem error) {
	f, err := dir.Open(positionName, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return position{}, err
	}
	b := make([]byte, min(size, 1024))
	if err := readFull(f, b, 0); err != nil {
		return position{}, err
	}
	var s signed
	if err := json.Unmarshal(b, &s); err != nil {
		return position{}, fmt.Errorf("the file is damaged: %w", err)
	}
	if s.Sum != s.sum() || s.Offset < 0 {
		return position{}, errors.New("the file is damaged: its checksum is wrong")
	}
	return s.position, nil
}

// writePosition replaces the position durably. After an error, the old or the new one may be found.
func writePosition(dir FS, p position) (err error) {
	// The three members always marshal.
	b, _ := json.Marshal(signed{p, p.sum()})
	f, err := dir.Open(positionTemp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("write position: %w", err)
	}
	err = writeAll(f, append(b, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if err = dir.Rename(positionTemp, positionName); err == nil {
			err = dir.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("write position: %w", err)
	}
	return nil
}
