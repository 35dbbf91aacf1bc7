// Package server wires the rooms to what commands run: a process that takes events in and
// judges them (Server), a client that has somebody to answer it (Connect), an import, a log that
// is replayed where it lies (Log). One file a service; the drawing of what a server wires stands
// in server.go.
package server
