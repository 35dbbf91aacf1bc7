package impersonation

import (
	"os"
	"strconv"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// TestFilters compares with the real filters; ORACLE_IMPERSONATIONS requests, each in seven ways.
func TestFilters(t *testing.T) {
	n := uint64(6000)
	if v := os.Getenv("ORACLE_IMPERSONATIONS"); v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Run(n, 1, Retrial)
	t.Logf("%+v", f)
	if err != nil {
		t.Fatal(err)
	}
	for what, share := range map[string]uint64{
		"permitted": f.Permitted, "refused": f.Refused, "malformed": f.Malformed, "legacy": f.Legacy, "single modes": f.ModesPermitted,
	} {
		if share*50 < f.Requests {
			t.Errorf("%s: %d of %d requests; the generator has lost its aim", what, share, f.Requests)
		}
	}
	if f.Indistinguishable*10 > f.Modes {
		t.Errorf("%d of %d refusals by single modes cannot be told from what the apiserver adds", f.Indistinguishable, f.Modes)
	}
}

// TestMutants sees that something wrong is found.
func TestMutants(t *testing.T) {
	changed := func(change func(*event.Event)) Judge {
		return func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
			c := *e
			if e.ImpersonatedUser != nil {
				u := *e.ImpersonatedUser
				c.ImpersonatedUser = &u
			}
			change(&c)
			return eng.Replay(&c, s)
		}
	}
	acting := func(change func(*event.Event, *event.User)) Judge {
		return changed(func(e *event.Event) {
			if e.ImpersonatedUser != nil {
				change(e, e.ImpersonatedUser)
			}
		})
	}
	for name, judge := range map[string]Judge{
		"forgets the uid":             acting(func(_ *event.Event, u *event.User) { u.UID = "" }),
		"forgets extra":               acting(func(_ *event.Event, u *event.User) { u.Extra = nil }),
		"forgets the first group":     acting(func(_ *event.Event, u *event.User) { u.Groups = u.Groups[min(1, len(u.Groups)):] }),
		"takes another user":          acting(func(_ *event.Event, u *event.User) { u.Username = "bob" }),
		"does not see the constraint": acting(func(e *event.Event, _ *event.User) { e.AuthenticationMetadata = nil }),
		"takes another mode": acting(func(e *event.Event, _ *event.User) {
			if e.AuthenticationMetadata != nil {
				e.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: "impersonate:user-info"}
			}
		}),
		"asks about another request":     acting(func(e *event.Event, _ *event.User) { e.RequestURI = "/api/v1/secrets" }),
		"asks as the impersonated user":  acting(func(e *event.Event, u *event.User) { e.User = *u }),
		"forgets the requestor's groups": changed(func(e *event.Event) { e.User.Groups = nil }),
		"does not read the message": changed(func(e *event.Event) {
			if e.Code() == 403 && len(e.Annotations) == 0 {
				e.ResponseStatus = &event.Status{Code: 403, Message: `users "alice" is forbidden: User "sue" cannot impersonate resource ` +
					`"users" in API group "" at the cluster scope`}
			}
		}),
		"knows no policy": func(eng *replay.Engine, e *event.Event, _ *state.State) *verdict.Verdict { return eng.Replay(e, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Run(6000, 2, judge)
			if err == nil {
				t.Errorf("not found in %d comparisons", f.Comparisons)
			}
		})
	}
}
