package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/atomicfile"
)

const (
	positionVersion = 1
	// digestBytes is how much of a file identifies it.
	digestBytes = 1 << 20
	// maxMarks bounds the position file; the oldest marks go first.
	maxMarks = 10_000
	// saveEvery is the shortest interval at which a running import saves its position.
	saveEvery = time.Second
)

// mark is how much of one file was imported into one cluster. A file is identified by content, not name: logs are renamed when they rotate.
type mark struct {
	Cluster string `json:"cluster"`
	State   bool   `json:"state,omitempty"` // imported as a state, not as a log
	Name    string `json:"name"`            // for people
	Digest  string `json:"digest"`          // sha256 of the first Length bytes as stored
	Length  int64  `json:"length"`
	Size    int64  `json:"size"`   // as stored, when last seen; a log may have grown since
	Policy  int64  `json:"policy"` // lines whose policy copies are acknowledged
	Line    int64  `json:"line"`   // lines whose events are acknowledged
	Done    bool   `json:"done"`   // all of Size is
	// Since is the earliest request in the lines whose policy copies are acknowledged, in
	// microseconds since 1970; 0 means none.
	Since int64 `json:"since,omitempty"`
}

// earliest moves Since back to t.
func (m *mark) earliest(t time.Time) {
	if us := t.UnixMicro(); !t.IsZero() && (m.Since == 0 || us < m.Since) {
		m.Since = us
	}
}

type positions struct {
	path  string
	marks []*mark
	saved time.Time
}

// positionFile is a position file: of an import, or of a follower, which names its cluster.
type positionFile[M any] struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster,omitempty"`
	Files   []M    `json:"files"`
}

// readPosition reads a position file. What it returns is empty if there is none, or if a crash left it
// unreadable, which unreadable says: that costs nothing but time. Other errors begin with what.
func readPosition[M any](path, what, unreadable string, log *zap.Logger) (f positionFile[M], err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", what, err)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Version != positionVersion {
		log.Warn(unreadable, zap.String("path", path), zap.Error(err))
		return positionFile[M]{}, nil
	}
	return f, nil
}

// write writes the file and waits until it is on disk.
func (f positionFile[M]) write(path string) error {
	f.Version = positionVersion
	data, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save import position: %w", err)
	}
	return nil
}

func bounded[M any](marks []M) []M { return marks[max(0, len(marks)-maxMarks):] }

func loadPositions(path string, log *zap.Logger) (*positions, error) {
	p := &positions{path: path}
	if path == "" {
		return p, nil
	}
	f, err := readPosition[*mark](path, "read import position", "import position is unreadable, importing from the beginning", log)
	if err != nil {
		return nil, err
	}
	for _, m := range f.Files {
		if m != nil && m.Length >= 0 && m.Length <= digestBytes {
			p.marks = append(p.marks, m)
		}
	}
	return p, nil
}

// find returns the mark of the file's content in cluster, as a state or a log, or a new one. A file that grew keeps its mark.
func (p *positions) find(cluster string, f File, isState bool) (*mark, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, digestBytes))
	if err != nil {
		return nil, err
	}
	sum := func(n int64) string {
		s := sha256.Sum256(head[:n])
		return hex.EncodeToString(s[:])
	}
	length := int64(len(head))
	for _, m := range p.marks {
		if m.Cluster != cluster || m.State != isState || m.Length > length || m.Length == 0 || m.Size > f.Size ||
			m.Digest != sum(m.Length) {
			continue
		}
		if m.Size != f.Size {
			m.Done = false
		}
		m.Name, m.Size, m.Length, m.Digest = f.Name, f.Size, length, sum(length)
		return m, nil
	}
	m := &mark{Cluster: cluster, State: isState, Name: f.Name, Digest: sum(length), Length: length, Size: f.Size}
	if length == 0 {
		return m, nil // empty files are all alike, and there is nothing to record
	}
	p.marks = bounded(append(p.marks, m))
	return m, nil
}

// note saves the file if it was not saved within saveEvery: if a crash loses a newer one, the import posts again what the receiver has.
func (p *positions) note() error {
	if time.Since(p.saved) < saveEvery {
		return nil
	}
	return p.save()
}

func (p *positions) save() error {
	p.saved = time.Now()
	if p.path == "" {
		return nil
	}
	return positionFile[*mark]{Files: p.marks}.write(p.path)
}

// followMark is how far one file of a followed log is acknowledged.
type followMark struct {
	Head   string `json:"head"`   // digest of its first line, see headOf
	Name   string `json:"name"`   // where it was last found, for people
	Offset int64  `json:"offset"` // inflated bytes that are acknowledged
	// Packed is set once a compressed copy was read to its end: it does not grow, and is
	// not inflated again.
	Packed bool `json:"packed,omitempty"`
}

type followPosition struct {
	path    string
	cluster string
	marks   []*followMark // in the order they were entered
}

// loadFollowPosition reads the file at path; without one the oldest file comes first: nothing is stored twice. Another cluster's fails.
func loadFollowPosition(path, cluster string, log *zap.Logger) (*followPosition, error) {
	p := &followPosition{path: path, cluster: cluster}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("follow: position: %w", err)
	}
	f, err := readPosition[*followMark](path, "follow: position", "position is unreadable, following from the oldest file", log)
	if err != nil {
		return nil, err
	}
	if f.Version != 0 && f.Cluster != cluster {
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
	if i := slices.IndexFunc(p.marks, func(m *followMark) bool { return m.Head == head }); i >= 0 {
		return p.marks[i]
	}
	return nil
}

// enter returns the mark of a file that was found, making one if there is none.
func (p *followPosition) enter(head, name string) *followMark {
	m := p.mark(head)
	if m == nil {
		m = &followMark{Head: head}
		p.marks = bounded(append(p.marks, m))
	}
	m.Name = name
	return m
}

func (p *followPosition) save() error {
	return positionFile[*followMark]{Cluster: p.cluster, Files: p.marks}.write(p.path)
}
