// Package recorder runs a kube-apiserver in a given configuration, makes requests whose
// meaning is known, and keeps what a judge of them needs:
//
//	Start(t, Config) ─▶ control plane ─▶ Recorder.Actor(…).May / MayNot / … ─▶ Finish ─▶ folder
//
//	audit.jsonl       the log backend's file, tokens redacted
//	state.json        `kubectl get … -o json` as one List, of when the policy was taken
//	config/           a flags file or a static-pod manifest, and the files it names
//	scenarios.jsonl   one line a request: its audit ID, who, what was meant, what was answered
//
// Recordings that are kept lie in replay/testdata/recordings, compressed; what is in them was
// made for them and is worth nothing.
package recorder
