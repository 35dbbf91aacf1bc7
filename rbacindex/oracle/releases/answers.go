package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/retrial-io/retrial/rbacindex/oracle/node"
)

// recorded is where the product's tests read the cases and the answers.
const recorded = "../../replay/authz/testdata/releases"

// The script of cases.
const (
	scriptSeed     = 14
	scriptClusters = 60
	scriptRequests = 200
)

// variants are settings of feature gates beside the defaults. A release is asked those whose
// gates it knows and does not lock.
var variants = []map[string]bool{
	{},
	{"AuthorizeNodeWithSelectors": false},
	{"AuthorizeNodeWithSelectors": true, "AuthorizeWithSelectors": true},
	{"KubeletServiceAccountTokenForCredentialProviders": false},
	{"KubeletServiceAccountTokenForCredentialProviders": true, "ClusterTrustBundle": true},
	{"PodCertificateRequest": true},
	{"PodCertificateRequest": false, "ClusterTrustBundle": false, "ClusterTrustBundleProjection": false},
	{"CSIVolumeHealth": true},
}

// recording is a release's answers under each variant.
type recording struct {
	Release string
	Version string `json:",omitempty"` // of the code that was asked, where the tables are of another
	Asked   []asked
}

// asked are the answers under one variant, with what the release says of itself then: for each
// question twice the index of its reason, and one more when it is allowed.
type asked struct {
	Gates   map[string]bool
	Self    json.RawMessage
	Reasons []string
	Answers []int
}

// writeCases writes the script.
func writeCases() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for line, err := range node.Script(scriptSeed, scriptClusters, scriptRequests) {
		if err != nil {
			return err
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return packed("cases.jsonl.zst", b.Bytes())
}

// writeAnswers asks a release's own authorizers and writes what they say.
func writeAnswers(r release) error {
	binary, err := build(r)
	if err != nil {
		return err
	}
	cases, err := unpacked("cases.jsonl.zst")
	if err != nil {
		return err
	}
	t, err := read(r)
	if err != nil {
		return err
	}
	rec := recording{Release: r.minor}
	if r.asked != r.version {
		rec.Version = r.asked
	}
	for _, gates := range variants {
		args, possible := settings(t, gates)
		if !possible {
			continue
		}
		cmd := exec.Command(binary, args...)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(cases), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s %v: %w", binary, args, err)
		}
		a, err := answersOf(out)
		if err != nil {
			return err
		}
		a.Gates = gates
		rec.Asked = append(rec.Asked, a)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d questions under %d settings of gates\n", r.minor, len(rec.Asked[0].Answers), len(rec.Asked))
	return packed(r.minor+".json.zst", data)
}

// settings returns the arguments for a variant; false if the release cannot be set so, or when
// that changes nothing.
func settings(t *table, gates map[string]bool) (args []string, possible bool) {
	changes := len(gates) == 0
	for name, v := range gates {
		g, ok := t.gates[name]
		if !ok || g.locked {
			return nil, false
		}
		changes = changes || g.on != v
		args = append(args, fmt.Sprintf("%s=%v", name, v))
	}
	return []string{strings.Join(args, ",")}, changes
}

func answersOf(out []byte) (a asked, err error) {
	index := map[string]int{}
	in := bufio.NewScanner(bytes.NewReader(out))
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		if a.Self == nil {
			if a.Self, err = inOrder(in.Bytes()); err != nil {
				return a, err
			}
			continue
		}
		var one struct{ Decision, Reason string }
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return a, err
		}
		if one.Decision == "d" {
			return a, fmt.Errorf("an authorizer denied: %s", one.Reason)
		}
		i, ok := index[one.Reason]
		if !ok {
			i = len(a.Reasons)
			index[one.Reason] = i
			a.Reasons = append(a.Reasons, one.Reason)
		}
		i *= 2
		if one.Decision == "a" {
			i++
		}
		a.Answers = append(a.Answers, i)
	}
	return a, in.Err()
}

// inOrder returns what a release says of itself with its namespaces' roles and bindings in order: it
// has them in maps.
func inOrder(self []byte) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(self, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"Roles", "RoleBindings"} {
		var objects []json.RawMessage
		if err := json.Unmarshal(fields[name], &objects); err != nil {
			return nil, err
		}
		slices.SortFunc(objects, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
		var err error
		if fields[name], err = json.Marshal(objects); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// packed writes a file of the recording; unpacked reads one.
func packed(name string, data []byte) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(recorded, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(recorded, name), enc.EncodeAll(data, nil), 0o644)
}

func unpacked(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(recorded, name))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(data, nil)
}
