package config

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/kubenames"
)

// Versions of a line of an ABAC policy file. Lines without a version are of version v0.
const (
	abacV0      = "abac.authorization.kubernetes.io/v0"
	abacV1beta1 = "abac.authorization.kubernetes.io/v1beta1"
)

// authenticated is the group of all authenticated users.
const authenticated = kubenames.Authenticated

// abacSpec is what a line says; in version v0 it is the line itself.
type abacSpec struct {
	Line            int    `json:"-"`
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"`
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

// abacPolicy reads a policy file: one JSON object a line, empty lines and # lines skipped.
// A line that cannot be read keeps the apiserver from starting, so it is an error.
//
// What * and an empty subject match depends on the version: before 1.6 every user, including
// unauthenticated ones; since then every authenticated user.
func abacPolicy(data []byte, minor int) ([]PolicyLine, error) {
	anonymousToo := minor > 0 && minor < 6
	var lines []PolicyLine
	scanner := bufio.NewScanner(bytes.NewReader(data)) // with the apiserver's own limit on a line
	for n := 1; scanner.Scan(); n++ {
		b := bytes.TrimSpace(scanner.Bytes())
		if len(b) == 0 || b[0] == '#' {
			continue
		}
		l, err := abacLine(b, anonymousToo)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		l.Line = n
		lines = append(lines, l)
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return nil, errors.New("a line is longer than the 64 KiB that the apiserver accepts")
	}
	return lines, nil // nothing else can fail in memory
}

func abacLine(b []byte, anonymousToo bool) (PolicyLine, error) {
	var head struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Spec       abacSpec `json:"spec"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(b, &head); err != nil {
		return PolicyLine{}, fmt.Errorf("not a policy: %w", err)
	}
	switch {
	case head.APIVersion == abacV1beta1 && head.Kind == "Policy":
		l := head.Spec
		if !anonymousToo && (l.User == "*" || l.Group == "*") {
			l.User, l.Group = "", authenticated
		}
		return PolicyLine(l), nil
	case head.APIVersion == "" && (head.Kind == "" || head.Kind == "Policy"): // unversioned
	case head.APIVersion != abacV0 || head.Kind != "Policy":
		return PolicyLine{}, fmt.Errorf("%s of %s is not a policy: want Policy of %s", head.Kind, head.APIVersion, abacV1beta1)
	}
	var old abacSpec
	if err := json.UnmarshalCaseSensitivePreserveInts(b, &old); err != nil {
		return PolicyLine{}, fmt.Errorf("not a policy: %w", err)
	}
	return PolicyLine(fromV0(old, anonymousToo)), nil
}

// fromV0 converts a line without a version to version v1beta1.
func fromV0(v abacSpec, anonymousToo bool) abacSpec {
	l := v
	l.APIGroup, l.Namespace, l.Resource, l.NonResourcePath = "*", cmp.Or(v.Namespace, "*"), cmp.Or(v.Resource, "*"), ""
	unspecified := v.User == "" && v.Group == ""
	switch {
	case anonymousToo && unspecified:
		l.User = "*"
	case !anonymousToo && (unspecified || v.User == "*" || v.Group == "*"):
		l.User, l.Group = "", authenticated
	}
	if v.Namespace == "" && v.Resource == "" {
		l.NonResourcePath = "*"
	}
	return l
}
