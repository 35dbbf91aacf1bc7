package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/test/golden"
)

func TestDocsConfig(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Configuration

For operators: every setting, with its flag, environment variable, default and meaning.

Generated from internal/config; change the field's documentation there and run ` + "`make golden`" + `.

One YAML file (` + "`--config FILE`" + ` or RETRIAL_CONFIG), strictly decoded, beginning with

` + "```yaml\napiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n```" + `

Every member is also a flag and an environment variable; a flag wins over the environment, the environment over the file.
Durations are written 250ms, 2s, 12h, 30d; sizes 1048576, 512KiB, 128MiB, 2GiB; lists are comma-separated in flags.

| member | flag | environment | type | default | meaning |
| --- | --- | --- | --- | --- | --- |
`)
	cfg := config.Default()
	cfg.KeyFile = "" // depends on the user; its text says so
	for _, f := range cfg.Fields() {
		value := f.String()
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| %s | `--%s` | %s | %s | %s | %s |\n", f.Path, f.Flag, f.Env, f.Type(), value, f.Doc)
	}
	golden.File(t, "docs/config.md", b.String())
}
