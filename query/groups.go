package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/leastpriv"
)

// readSubject reads a subject as questions name it: a user name, user:NAME, or group:NAME.
func readSubject(subject string) (user, group string, err error) {
	if name, ok := strings.CutPrefix(subject, "group:"); ok {
		if name == "" {
			return "", "", Bad("subject: group: is followed by no name")
		}
		return "", name, nil
	}
	return strings.TrimPrefix(subject, "user:"), "", nil
}

// readAsked reads a subject and groups named beside it: the user, "" for none, and all groups.
func readAsked(subject string, beside []string) (user string, groups []string, err error) {
	user, group, err := readSubject(subject)
	groups = slices.Clone(beside)
	if group != "" {
		groups = append(groups, group)
	}
	return user, groups, err
}

// groupsUnknown is where groups are from that requests carried and nobody can tell any more.
const groupsUnknown = "unknown"

// groupsOf returns the groups of a user, sorted: those asked for, or else those its requests carried
// the last time, seen, or none; and with each what its name alone gives it. from says which; where it
// is groupsUnknown, missing names them.
func (a *Service) groupsOf(ctx context.Context, cluster, user string, asked []string, at time.Time) (groups []string, from string, seen *time.Time, missing []string, err error) {
	groups, from = slices.Clone(asked), "asked"
	if len(asked) == 0 {
		var last time.Time
		var told bool
		if groups, last, told, err = a.Store.LastGroups(ctx, cluster, user, at); err != nil {
			return nil, "", nil, nil, err
		}
		if from = "name"; !last.IsZero() {
			from, seen = "requests", &last
		}
		if !told {
			from, seen, missing = groupsUnknown, nil, []string{fmt.Sprintf("groups of %q", user)}
		}
	}
	if user != "" {
		groups = append(groups, leastpriv.GroupsOf(user)...)
	}
	slices.Sort(groups)
	return slices.Compact(groups), from, seen, missing, nil
}
