package cli

import (
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/phrase"
)

// Subject returns a subject that somebody wrote, which may be a group, as questions about rights take it; "" stays. The error names the
// argument or flag it is the value of.
func Subject(name, text string) (string, error) {
	s, err := subject(name, text)
	switch {
	case err != nil:
		return "", err
	case s.Group:
		return "group:" + s.Name, nil
	case strings.HasPrefix(s.Name, "group:"), strings.HasPrefix(s.Name, "user:"):
		return "user:" + s.Name, nil
	}
	return s.Name, nil
}

// User returns a user name that somebody wrote as a subject, for questions about requests: no group makes any.
func User(name, text string) (string, error) {
	s, err := subject(name, text)
	if err == nil && s.Group {
		err = ExitWith(ExitUsage, fmt.Errorf("%s %s is a group: requests are a user's or a service account's; want %s", name,
			phrase.Shorten(text), strings.Replace(kubenames.SubjectForms, "group/NAME, ", "", 1)))
	}
	return s.Name, err
}

func subject(name, text string) (kubenames.Subject, error) {
	s, err := kubenames.ParseSubject(text)
	if err != nil {
		return s, ExitWith(ExitUsage, fmt.Errorf("%s: %w", name, err))
	}
	return s, nil
}
