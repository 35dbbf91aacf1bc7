package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
)

// Version is the release of libchdb this build is tested with; it names the folder in the user's cache where the library is looked for.
const Version = "26.7.3"

// EnvLibrary names the environment variable that points at libchdb.so.
const EnvLibrary = "RETRIAL_LIBCHDB"

// Errors that callers may distinguish. Each is wrapped with the path concerned and what to do about it.
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

// Locate returns the path of libchdb.so: explicit if it is not empty, otherwise the environment variable [EnvLibrary], otherwise the user's
// cache folder ($XDG_CACHE_HOME or ~/.cache)/retrial/libchdb/<Version>/libchdb.so, which scripts/fetch-libchdb.sh fills. The error is an
// [ErrNoLibrary] that says where it looked.
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

// machine is what decides whether libchdb can be loaded: a value, so that tests can describe machines they do not run on.
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

// library is the part of libchdb's C API this package calls. Handles are opaque
// uintptrs owned by the library; every result and stream handle must be destroyed once.
//
// Byte buffers cross as pointer and length, never as NUL-terminated strings: SQL and data may contain NULs.
type library struct {
	setSignalHandlers func(enabled int32)
	version           func() string

	connect   func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn func(conn unsafe.Pointer)

	query func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, names, nameLens, values,
		valueLens unsafe.Pointer, params uintptr) uintptr
	stream func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, names, nameLens, values,
		valueLens unsafe.Pointer, params uintptr) uintptr
	fetch       func(conn, stream uintptr) uintptr
	cancelQuery func(conn, stream uintptr)

	insert        func(conn uintptr, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr) uintptr
	appendChunk   func(stream uintptr, data unsafe.Pointer, n uintptr) int32
	done          func(stream uintptr) uintptr
	cancelInsert  func(stream uintptr)
	insertError   func(stream uintptr) string
	destroyInsert func(stream uintptr)

	resultBuffer      func(result uintptr) unsafe.Pointer
	resultLength      func(result uintptr) uintptr
	resultError       func(result uintptr) string
	resultRowsWritten func(result uintptr) uint64
	destroyResult     func(result uintptr)
}

// loadLibrary opens the shared object at path, binds the functions and turns the library's signal handlers off. That must happen before the
// first connection: with them on, a nil dereference that Go would turn into a panic kills the process.
func loadLibrary(path string) (lib *library, err error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	lib = &library{}
	// RegisterLibFunc panics on a missing symbol: another library, or one too old.
	defer func() {
		if p := recover(); p != nil {
			lib, err = nil, fmt.Errorf("load %s: not the libchdb this build needs: %v", path, p)
		}
	}()
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &lib.setSignalHandlers,
		"chdb_version":                     &lib.version,
		"chdb_connect":                     &lib.connect,
		"chdb_close_conn":                  &lib.closeConn,
		"chdb_query_with_params_n":         &lib.query,
		"chdb_stream_query_with_params_n":  &lib.stream,
		"chdb_stream_fetch_result":         &lib.fetch,
		"chdb_stream_cancel_query":         &lib.cancelQuery,
		"chdb_stream_insert_n":             &lib.insert,
		"chdb_stream_append":               &lib.appendChunk,
		"chdb_stream_done":                 &lib.done,
		"chdb_stream_cancel_insert":        &lib.cancelInsert,
		"chdb_stream_insert_error":         &lib.insertError,
		"chdb_destroy_insert_stream":       &lib.destroyInsert,
		"chdb_result_buffer":               &lib.resultBuffer,
		"chdb_result_length":               &lib.resultLength,
		"chdb_result_error":                &lib.resultError,
		"chdb_result_rows_written":         &lib.resultRowsWritten,
		"chdb_destroy_query_result":        &lib.destroyResult,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	lib.setSignalHandlers(0)
	return lib, nil
}

// open connects with the given arguments; the first element stands for the program name.
// It returns the outer pointer, which close needs, or nil: the library gives no reason.
func (l *library) open(args []string) unsafe.Pointer {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]unsafe.Pointer, len(args)+1)
	for i, a := range args {
		b := append([]byte(a), 0)
		pin.Pin(&b[0])
		argv[i] = unsafe.Pointer(&b[0])
	}
	pin.Pin(&argv[0])
	return l.connect(int32(len(args)), unsafe.Pointer(&argv[0]))
}

// params are query parameters laid out as the C API takes them. Close unpins them.
type params struct {
	pin                                runtime.Pinner
	names, values                      []unsafe.Pointer
	nameLens, valueLens                []uintptr
	namesP, nameLensP, valuesP, vLensP unsafe.Pointer
}

// set fills p from pairs of name and value.
func (p *params) set(pairs [][2]string) {
	for _, kv := range pairs {
		p.names, p.nameLens = p.add(p.names, p.nameLens, kv[0])
		p.values, p.valueLens = p.add(p.values, p.valueLens, kv[1])
	}
	if len(pairs) == 0 {
		return
	}
	p.pin.Pin(&p.names[0])
	p.pin.Pin(&p.values[0])
	p.pin.Pin(&p.nameLens[0])
	p.pin.Pin(&p.valueLens[0])
	p.namesP, p.nameLensP = unsafe.Pointer(&p.names[0]), unsafe.Pointer(&p.nameLens[0])
	p.valuesP, p.vLensP = unsafe.Pointer(&p.values[0]), unsafe.Pointer(&p.valueLens[0])
}

func (p *params) add(ptrs []unsafe.Pointer, lens []uintptr, s string) ([]unsafe.Pointer, []uintptr) {
	b := append([]byte(s), 0) // never an empty slice: &b[0] must exist
	p.pin.Pin(&b[0])
	return append(ptrs, unsafe.Pointer(&b[0])), append(lens, uintptr(len(s)))
}

func (p *params) close() { p.pin.Unpin() }

// nativeFormat is the name of the format the driver exchanges.
var nativeFormat = []byte("Native\x00") //nolint:gochecknoglobals // a constant the C side reads

// run executes sql with fn, which is query or stream, and returns its result handle.
func (l *library) run(fn func(uintptr, unsafe.Pointer, uintptr, unsafe.Pointer, uintptr, unsafe.Pointer, unsafe.Pointer, unsafe.Pointer,
	unsafe.Pointer, uintptr) uintptr,
	conn uintptr, sql []byte, pairs [][2]string) uintptr {
	return l.runAs(fn, conn, sql, pairs, nativeFormat)
}

// runAs is run with a result in another format, whose name ends with a NUL.
func (l *library) runAs(fn func(uintptr, unsafe.Pointer, uintptr, unsafe.Pointer, uintptr, unsafe.Pointer, unsafe.Pointer, unsafe.Pointer,
	unsafe.Pointer, uintptr) uintptr,
	conn uintptr, sql []byte, pairs [][2]string, format []byte) uintptr {
	var p params
	defer p.close()
	p.set(pairs)
	r := fn(conn, bytesPointer(sql), uintptr(len(sql)), unsafe.Pointer(&format[0]), uintptr(len(format)-1),
		p.namesP, p.nameLensP, p.valuesP, p.vLensP, uintptr(len(pairs)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	return r
}

// bytesPointer returns the address of b's first byte, or nil for an empty slice.
func bytesPointer(b []byte) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(b))
}

// resultBytes returns a copy of the result's buffer, which is freed with the handle.
func (l *library) resultBytes(result uintptr) []byte {
	n := int(l.resultLength(result))
	if n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(l.resultBuffer(result)), n)...)
}
