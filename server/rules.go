package server

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/storage"
)

// Rules are the detection rules.
type Rules = detect.Set

// ruledStore is a store and the rules its findings come from.
type ruledStore struct {
	*storage.Store
	set *Rules
}

// DetectionRules returns the rules in the order of their ids.
func (s ruledStore) DetectionRules() []detect.Rule { return s.set.Rules() }

// configuredRules reads the rules a server detects with.
func configuredRules(cfg config.Config) (*Rules, error) {
	var dirs []string
	if cfg.Detect.RulesDir != "" {
		dirs = []string{cfg.Detect.RulesDir}
	}
	return LoadRules("detect-rules-dir", dirs)
}

// LoadRules reads the rules of the binary and those of folders, which the flag names.
func LoadRules(flag string, dirs []string) (*Rules, error) {
	all := []fs.FS{detect.BuiltinFiles()}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s %s: is no directory: name the folder the rule is in", flag, dir)
		}
		all = append(all, os.DirFS(dir))
	}
	set, err := detect.Load(all...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return set, nil
}
