package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/retrial-io/retrial/internal/inflate"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// stateInputs returns one listing a path; a folder's files are read as one.
func stateInputs(paths []string) ([]evaluate.Input, error) {
	inputs := make([]evaluate.Input, 0, len(paths))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--state: %w", err)
		}
		if !info.IsDir() {
			inputs = append(inputs, evaluate.Input{Name: path, Open: func() (io.ReadCloser, error) { return inflate.Open(path) }})
			continue
		}
		files, err := stateFiles(path)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, evaluate.Input{Name: path, Open: func() (io.ReadCloser, error) { return openAll(files) }})
	}
	return inputs, nil
}

func stateFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), ".json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("--state %s: the folder holds no .json, .json.gz or .json.zst file", dir)
	}
	return files, nil
}

type chain struct {
	io.Reader
	closers
}

func openAll(files []string) (io.ReadCloser, error) {
	c := &chain{}
	var readers []io.Reader
	for _, f := range files {
		r, err := inflate.Open(f)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.closers = append(c.closers, r.Close)
		readers = append(readers, r, strings.NewReader("\n"))
	}
	c.Reader = io.MultiReader(readers...)
	return c, nil
}

// Close closes every file.
func (c *chain) Close() error { return c.close() }

func eventInputs(paths []string, stdin io.Reader) ([]evaluate.Input, error) {
	inputs := make([]evaluate.Input, 0, len(paths))
	piped := false
	for _, path := range paths {
		if path == "-" {
			if piped {
				return nil, errors.New("--events: standard input is named twice")
			}
			piped = true
			in, err := spoolStdin(stdin)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, in)
			continue
		}
		info, err := os.Stat(path)
		server := ""
		if name, file, named := strings.Cut(path, "="); err != nil && named {
			server, path = name, file
			info, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
		if info.IsDir() {
			return nil, fmt.Errorf("--events %s is a directory: name the logs in it", path)
		}
		inputs = append(inputs,
			evaluate.Input{Name: path, Server: server, Open: func() (io.ReadCloser, error) { return inflate.Open(path) }})
	}
	return inputs, nil
}

// spoolStdin keeps standard input compressed in memory: the log is read twice, and its secrets must not reach a disk.
func spoolStdin(stdin io.Reader) (evaluate.Input, error) {
	var in evaluate.Input
	plain, err := inflate.Reader(stdin)
	if err != nil {
		return in, fmt.Errorf("standard input: %w", err)
	}
	defer plain.Close()
	var spool bytes.Buffer
	z, err := zstd.NewWriter(&spool, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return in, err
	}
	if _, err := io.Copy(z, plain); err != nil {
		return in, fmt.Errorf("standard input: %w", err)
	}
	if err := z.Close(); err != nil {
		return in, err
	}
	return evaluate.Input{Name: "-", Open: func() (io.ReadCloser, error) { return inflate.Reader(bytes.NewReader(spool.Bytes())) }}, nil
}
