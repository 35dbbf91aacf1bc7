package server

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
)

func TestRedactionKeyOfFilledData(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(dir, "d"), filepath.Join(dir, "key")
	if err := os.Mkdir(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := redactionKey(cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := redactionKey(cfg, zap.NewNop()); err != nil || !bytes.Equal(again, key) {
		t.Errorf("a second start: %v", err)
	}
	cfg.KeyFile = filepath.Join(dir, "lost")
	if _, err := redactionKey(cfg, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "restore it, or name it with --key-file") {
		t.Errorf("the key is gone: %v", err)
	}
	if _, err := os.Stat(cfg.KeyFile); !errors.Is(err, fs.ErrNotExist) {
		t.Error("another key was made for data that has one")
	}
	inside := cfg
	inside.KeyFile = filepath.Join(cfg.DataDir, "key")
	if _, err := redactionKey(inside, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "choose a file elsewhere") {
		t.Errorf("a key beside the data: %v", err)
	}
	other := config.Default()
	other.DataDir, other.KeyFile = filepath.Join(dir, "e"), cfg.KeyFile
	if err := os.Mkdir(other.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := redactionKey(other, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if _, err := redactionKey(cfg, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "was filled under") {
		t.Errorf("the key of another installation: %v", err)
	}
}
