// Package sample carries a real audit log, recorded from a Kubernetes 1.36 apiserver, and
// the state of its cluster at the start of the recording. `make run` imports it so that the
// first page shows real verdicts; tests replay it as their corpus.
//
// The cluster was made for the recording and no longer exists; its names, tokens and keys are
// worthless.
package sample

import (
	"bytes"
	_ "embed"
	"io"

	"github.com/retrial-io/retrial/internal/inflate"
)

//go:embed audit.jsonl.zst
var auditLog []byte

//go:embed state.json.zst
var state []byte

// Names of the embedded files, as a user would see them on disk.
const (
	AuditLogName = "audit.jsonl.zst"
	StateName    = "state.json.zst"
)

// AuditLogZstd returns the audit log as stored: zstd-compressed JSON lines, one
// audit.k8s.io/v1 Event each, in the order the apiserver wrote them. Read-only.
func AuditLogZstd() []byte { return auditLog }

// StateZstd returns the cluster state as stored: a zstd-compressed `kubectl get -o json`
// List. Read-only.
func StateZstd() []byte { return state }

// OpenAuditLog opens the audit log, decompressed.
func OpenAuditLog() (io.ReadCloser, error) { return open(auditLog) }

// OpenState opens the state file, decompressed.
func OpenState() (io.ReadCloser, error) { return open(state) }

func open(b []byte) (io.ReadCloser, error) { return inflate.Reader(bytes.NewReader(b)) }
