package config

import "path/filepath"

// Absolute is path as it is found from anywhere.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// KeyIDFile names the redaction key of what is stored: it is there once something may be.
func (c Config) KeyIDFile() string { return filepath.Join(c.DataDir, "redaction-key.id") }

// SpoolDir is where records are kept that Kafka does not take.
func (c Config) SpoolDir() string {
	if c.Spool.Dir != "" {
		return c.Spool.Dir
	}
	return filepath.Join(c.DataDir, "spool")
}
