package kafkatest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// DefaultVersion is the version of Kafka that `make test` runs.
const DefaultVersion = "4.1.2"

// Versions are those that `make test-kafka` runs: the newest of each line that is supported.
var Versions = []string{"3.9.2", "4.1.2"}

// errLacking: Kafka cannot run on this machine as it is; the text says what to do.
var errLacking = errors.New("a real Kafka")

// installation is what is needed to run a version of Kafka.
type installation struct{ java, classPath string }

// locate finds a version's jars where scripts/fetch-kafka.sh puts them, and a Java runtime.
func locate(version string) (installation, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return installation{}, fmt.Errorf("%w: no Java runtime; run: scripts/fetch-kafka.sh %s", errLacking, version)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return installation{}, fmt.Errorf("%w: %w", errLacking, err)
	}
	folder := filepath.Join(cache, "retrial", "kafka", version)
	switch _, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return installation{}, fmt.Errorf("%w: no jars in %s; run: scripts/fetch-kafka.sh %s", errLacking, folder, version)
	case err != nil:
		return installation{}, fmt.Errorf("look for Kafka's jars: %w", err)
	}
	return installation{java, filepath.Join(folder, "*")}, nil
}
