package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// Version is the release of libchdb this build is tested with; it names the folder in the
// user's cache where the library is looked for.
const Version = "26.7.3"

// EnvLibrary names the environment variable that points at libchdb.so.
const EnvLibrary = "RETRIAL_LIBCHDB"

// Errors that callers may distinguish. Each is wrapped with the path concerned and what to do
// about it.
var (
	// ErrNoLibrary: libchdb.so was not found.
	ErrNoLibrary = errors.New("libchdb not found")
	// ErrUnsuitable: this machine cannot run libchdb (system, CPU or C library).
	ErrUnsuitable = errors.New("machine cannot run the embedded store")
	// ErrLocked: another store, in this process or another one, holds the data directory.
	ErrLocked = errors.New("data directory is in use")
	// ErrUnwritable: the data directory cannot be created or written.
	ErrUnwritable = errors.New("data directory is not writable")
	// ErrRefused: the engine did not start and gave no reason.
	ErrRefused = errors.New("engine refused to start")
)

// remedy is what every message about an unusable embedded store ends with.
const remedy = "use a ClickHouse server instead (--clickhouse-dsn), or evaluate files offline (retrial evaluate)"

// Locate returns the path of libchdb.so: explicit if it is not empty, otherwise the environment
// variable [EnvLibrary], otherwise the user's cache folder
// ($XDG_CACHE_HOME or ~/.cache)/retrial/libchdb/<Version>/libchdb.so, which
// scripts/fetch-libchdb.sh fills. The error is an [ErrNoLibrary] that says where it looked.
func Locate(explicit string) (string, error) {
	if explicit != "" {
		return checkFile(explicit, "as configured")
	}
	if env := os.Getenv(EnvLibrary); env != "" {
		return checkFile(env, "named by "+EnvLibrary)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: no cache folder: %w; set %s to the path of libchdb.so", ErrNoLibrary, err, EnvLibrary)
	}
	return checkFile(filepath.Join(cache, "retrial", "libchdb", Version, "libchdb.so"), "in the cache folder")
}

func checkFile(path, how string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s (%s): %w; run scripts/fetch-libchdb.sh, or %s", ErrNoLibrary, path, how, err, remedy)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s (%s) is not a file", ErrNoLibrary, path, how)
	}
	return path, nil
}

// machine is what decides whether libchdb can be loaded: a value, so that tests can describe
// machines they do not run on.
type machine struct {
	os, arch string
	avx2     bool
	musl     bool
}

func thisMachine() machine {
	musl, err := filepath.Glob("/lib/ld-musl-*")
	glibc, err2 := filepath.Glob("/lib*/ld-linux-*")
	return machine{
		os: runtime.GOOS, arch: runtime.GOARCH,
		avx2: cpu.X86.HasAVX2,
		musl: err == nil && err2 == nil && len(musl) > 0 && len(glibc) == 0,
	}
}

// Suitable reports whether this machine can run the embedded store: linux/amd64 with AVX2
// and glibc. The error is an [ErrUnsuitable] that says what is missing and what to use instead.
func Suitable() error { return thisMachine().check() }

func (m machine) check() error {
	var lacks []string
	if m.os != "linux" || m.arch != "amd64" {
		lacks = append(lacks, fmt.Sprintf("it needs linux/amd64, this is %s/%s", m.os, m.arch))
	} else {
		if !m.avx2 {
			lacks = append(lacks, "the CPU lacks AVX2")
		}
		if m.musl {
			lacks = append(lacks, "the C library is musl, it needs glibc")
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; %s", ErrUnsuitable, strings.Join(lacks, ", "), remedy)
}
