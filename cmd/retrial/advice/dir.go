package advice

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/changeset"
)

// mark is how the README.md of a directory begins that this package wrote.
const mark = "# Narrower roles for cluster "

// entries are all that such a directory holds.
var entries = []string{ //nolint:gochecknoglobals // constant table
	"README.md", "apply", "apply.sh", "kustomization.yaml", "owners", "patches", "remove", "remove.sh", "rollback", "rollback.sh",
}

// Directory writes a change as a directory, whole or not at all; with force it takes the place of an earlier one. It returns the number of
// files.
func Directory(path string, answer *query.SuggestAnswer, force bool) (int, error) {
	list, err := changeset.Files(answer)
	if err != nil {
		return 0, err //nolint:wrapcheck // it says what failed
	}
	files := map[string][]byte{}
	for _, f := range list {
		files[f.Name] = f.Text
	}
	err = atomicfile.Folder(path, files, "README.md", func(there []string) error {
		return replaceable(path, there, force)
	})
	if err != nil {
		return 0, fmt.Errorf("write the directory: %w", err)
	}
	return len(files), nil
}

// replaceable returns an error unless entries of a directory may go.
func replaceable(path string, there []string, force bool) error {
	for _, name := range there {
		if !slices.Contains(entries, name) {
			return fmt.Errorf("%s is not empty: it holds %s, which is not of a change; name another directory", path, name)
		}
	}
	text, err := os.ReadFile(filepath.Join(path, "README.md"))
	switch {
	case err != nil || !strings.HasPrefix(string(text), mark):
		return fmt.Errorf("%s is not empty, and not an earlier change: name another directory", path)
	case !force:
		return fmt.Errorf("%s holds an earlier change: name another directory, or --force to replace it", path)
	}
	return nil
}
