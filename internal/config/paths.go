package config

import "path/filepath"

// Absolute returns path as an absolute path.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// KeyIDFile returns the path of the file that names the redaction key of the stored data. It
// exists once anything may be stored.
func (c Config) KeyIDFile() string { return filepath.Join(c.DataDir, "redaction-key.id") }

// SpoolDir returns the folder for records that Kafka does not accept.
func (c Config) SpoolDir() string {
	if c.Spool.Dir != "" {
		return c.Spool.Dir
	}
	return filepath.Join(c.DataDir, "spool")
}
