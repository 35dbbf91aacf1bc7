package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Flags is a configuration as command-line flags.
type Flags struct {
	cfg  Config
	file string
	set  *pflag.FlagSet
}

// Bind adds --config and a flag for every field to the flag set.
func Bind(set *pflag.FlagSet) *Flags {
	f := &Flags{cfg: Default(), set: set}
	set.StringVar(&f.file, "config", os.Getenv("RETRIAL_CONFIG"), "configuration file (apiVersion: "+APIVersion+", kind: "+Kind+")")
	for _, field := range f.cfg.Fields() {
		sentence, _, _ := strings.Cut(strings.TrimSuffix(field.Doc, "."), ". ")
		flag := set.VarPF(&flagValue{Field: field}, field.Flag, "", sentence)
		if field.IsBoolFlag() {
			flag.NoOptDefVal = "true"
		}
	}
	return f
}

// flagValue is a field as a flag: a list may be given in several flags.
type flagValue struct {
	Field
	given bool
}

// Set parses s into the field, or appends it to a list that an earlier flag began.
func (f *flagValue) Set(s string) error {
	if f.given && f.Type() == "list" {
		if before := f.String(); before != "" {
			s = before + "," + s
		}
	}
	f.given = true
	return f.Field.Set(s)
}

// Load returns the configuration from file, environment and flags, validated. Call it after
// the flag set has been parsed.
func (f *Flags) Load() (Config, error) { return f.LoadWithout("") }

// LoadWithout is Load as if one of the flags was not given.
func (f *Flags) LoadWithout(flag string) (Config, error) {
	fromFlags := map[string]string{}
	for _, field := range f.cfg.Fields() {
		if f.set.Changed(field.Flag) && field.Flag != flag {
			fromFlags[field.Flag] = field.String()
		}
	}
	cfg := Default()
	if f.file != "" {
		if err := cfg.ReadFile(f.file); err != nil {
			return cfg, err
		}
	}
	for _, field := range cfg.Fields() {
		value, from := os.Getenv(field.Env), field.Env
		if flag, ok := fromFlags[field.Flag]; ok {
			value, from = flag, "--"+field.Flag
		} else if value == "" {
			continue
		}
		if err := field.Set(value); err != nil {
			return cfg, fmt.Errorf("%s: %w", from, err)
		}
	}
	return cfg, cfg.Validate()
}

// ReadFile overrides the configuration with what the file sets. Unknown members are errors.
func (c *Config) ReadFile(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	c.APIVersion, c.Kind = "", ""
	asJSON, err := yaml.YAMLToJSONStrict(b)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	// encoding/json ignores the case of members; this decoder does not.
	strict, err := json.UnmarshalStrict(asJSON, c)
	if named := c.badValue(asJSON); named != nil {
		err = named // a value's own error does not name its member
	}
	if err = errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return fmt.Errorf("configuration %s: want apiVersion: %s and kind: %s, have %q and %q",
			path, APIVersion, Kind, c.APIVersion, c.Kind)
	}
	return nil
}

// badValue returns an error that names the first member of a document with an invalid value.
func (c *Config) badValue(asJSON []byte) error {
	var doc map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(asJSON, &doc); err != nil {
		return nil //nolint:nilerr // the caller reports it
	}
	scratch := *c
	for _, f := range scratch.Fields() {
		var value any = doc
		for _, name := range strings.Split(f.Path, ".") {
			members, _ := value.(map[string]any)
			value = members[name]
		}
		if text, ok := value.(string); ok {
			if err := f.Set(text); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
	}
	return nil
}

// CheckFiles returns an error if a file that the configuration names cannot be read.
func (c *Config) CheckFiles() error {
	var errs []error
	check := func(flag, path string) {
		if path == "" {
			return
		}
		f, err := os.Open(path)
		if err == nil {
			var info os.FileInfo
			if info, err = f.Stat(); err == nil && info.IsDir() {
				err = fmt.Errorf("%s is a directory", path)
			}
			_ = f.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	for _, f := range c.Fields() {
		if f.file {
			check(f.Flag, f.String())
		}
	}
	for _, entry := range c.Watch.Clusters {
		if _, kubeconfig, err := WatchedCluster(entry); err == nil {
			check("watch-clusters", kubeconfig)
		}
	}
	for _, entry := range c.Replay.ApiserverConfig {
		if _, folder, err := ApiserverFolder(entry); err == nil {
			if _, err := os.ReadDir(folder); err != nil {
				errs = append(errs, fmt.Errorf("apiserver-config: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}
