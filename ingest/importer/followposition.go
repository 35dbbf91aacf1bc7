package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// followMark is how far one file of a followed log is acknowledged.
type followMark struct {
	Head   string `json:"head"`   // digest of its first line, see headOf
	Name   string `json:"name"`   // where it was last found, for people
	Offset int64  `json:"offset"` // inflated bytes that are acknowledged
	// Packed is set once a compressed copy was read to its end: it does not grow, and is
	// not inflated again.
	Packed bool `json:"packed,omitempty"`
}

// followPosition is the position file of a Follow.
type followPosition struct {
	path    string
	cluster string
	marks   []*followMark // in the order they were entered
}

type followFile struct {
	Version int           `json:"version"`
	Cluster string        `json:"cluster"`
	Files   []*followMark `json:"files"`
}

// loadFollowPosition reads the file at path. If there is none, or a crash left it unreadable,
// following begins with the oldest file: what is already stored is not stored again. A position
// of another cluster is an error.
func loadFollowPosition(path, cluster string, log *zap.Logger) (*followPosition, error) {
	p := &followPosition{path: path, cluster: cluster}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("follow: position: %w", err)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("follow: position: %w", err)
	}
	var f followFile
	if err := json.Unmarshal(data, &f); err != nil || f.Version != positionVersion {
		log.Warn("position is unreadable, following from the oldest file", zap.String("path", path), zap.Error(err))
		return p, nil
	}
	if f.Cluster != cluster {
		return nil, fmt.Errorf("follow: position %s belongs to cluster %q, not to %q: name another file", path, f.Cluster, cluster)
	}
	for _, m := range f.Files {
		if m != nil && m.Head != "" && m.Offset >= 0 {
			p.marks = append(p.marks, m)
		}
	}
	return p, nil
}

// mark returns the mark of the file that head identifies, nil if there is none.
func (p *followPosition) mark(head string) *followMark {
	for _, m := range p.marks {
		if m.Head == head {
			return m
		}
	}
	return nil
}

// enter returns the mark of a file that was found, making one if there is none.
func (p *followPosition) enter(head, name string) *followMark {
	m := p.mark(head)
	if m == nil {
		m = &followMark{Head: head}
		p.marks = append(p.marks, m)
		if n := len(p.marks) - maxMarks; n > 0 {
			p.marks = append([]*followMark(nil), p.marks[n:]...)
		}
	}
	m.Name = name
	return m
}

// save writes the file and waits until it is on disk.
func (p *followPosition) save() error {
	data, err := json.MarshalIndent(followFile{positionVersion, p.cluster, p.marks}, "", "  ")
	if err != nil {
		return fmt.Errorf("follow: save position: %w", err)
	}
	return writePosition(p.path, append(data, '\n'))
}
