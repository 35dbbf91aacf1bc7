package config

import (
	"errors"
	"io/fs"
)

// Read reads the configuration of one apiserver from a folder, of one time.
func Read(fsys fs.FS, o Options) (*APIServer, *Report, error) {
	b, err := read(fsys, ".", o, nil)
	if b == nil {
		return nil, &Report{}, err
	}
	if err == nil {
		err = errors.Join(b.authnErr, b.authzErr)
	}
	report := &Report{Versions: []*Reading{b.r}}
	if err != nil {
		return nil, report, err
	}
	b.finish()
	return b.a, report, nil
}
