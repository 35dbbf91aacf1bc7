package detect

import (
	"embed"
	"io/fs"
)

//go:embed rules/*.yaml
var builtin embed.FS

// BuiltinFiles returns the files of the built-in rules.
func BuiltinFiles() fs.FS {
	sub, err := fs.Sub(builtin, "rules")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
