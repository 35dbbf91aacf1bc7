package detect

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Kinds of rules.
const (
	KindEvent     = "event"
	KindWindow    = "window"
	KindFirstSeen = "first-seen"
)

// Severities returns the severities of rules, from the lowest.
func Severities() []string { return []string{"info", "low", "medium", "high", "critical"} }

// Rule is one rule file. Expressions are CEL over the variables of Variables.
type Rule struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Severity    string   `json:"severity"` // info, low, medium, high, critical
	Attack      []string `json:"attack"`   // MITRE ATT&CK technique ids
	Kind        string   `json:"kind"`     // event, window, first-seen
	Match       Match    `json:"match"`
	// Expr selects requests; bool. Empty selects all that Match admits.
	Expr string `json:"expr"`
	// GroupBy are string expressions; requests that agree in all of them form a group. Default: the
	// subject. For a first-seen rule they are the key.
	GroupBy []string `json:"groupBy"`
	Window  Window   `json:"window"`
	Counts  []Count  `json:"counts"` // window rules: all must hold
	// About names whom a finding is about, from its earliest request; string. Empty, or with an
	// empty result: the requestor.
	About string `json:"about"`
	// Says adds to the line about a request what it says beyond who, what and where; string.
	Says string `json:"says"`
	// Baseline is how long a cluster must have been observed before a key counts as new.
	Baseline Duration `json:"baseline"`
}

// Match is compared before any expression runs; an empty list admits everything. It is an index,
// not a filter with another meaning: everything in it could be written in Expr, at a higher cost.
type Match struct {
	Verbs     []string `json:"verbs"`
	Resources []string `json:"resources"` // resource[/subresource][.group]: "pods/exec", "roles.rbac.authorization.k8s.io"
	Stages    []string `json:"stages"`
	Recorded  []string `json:"recorded"` // allow, forbid, none
	Outcomes  []string `json:"outcomes"` // match, drift, ambiguous, indeterminate, not_judged
	Groups    []string `json:"groups"`   // the user, or the one it acts as, is in any of them
	// Annotations are prefixes of annotation keys, Identity names of contradictions in the recorded
	// identity; any of them suffices.
	Annotations []string `json:"annotations"`
	Identity    []string `json:"identity"`
}

// Window is a stretch of event time. Windows begin at multiples of Every since 1970 UTC: with Every
// equal to Length (the default) they tumble, with a divisor of it they slide by Every. All windows
// of one group that begin between two multiples of Fold give one finding. An event rule has only
// Fold.
type Window struct {
	Length Duration `json:"length"`
	Every  Duration `json:"every"`
	Fold   Duration `json:"fold"` // default: an hour, or Length if that is longer
}

// Count is a threshold on a window. Requests of the first threshold are a finding's evidence.
type Count struct {
	Where    string `json:"where"`    // bool expression; empty counts every selected request
	Distinct string `json:"distinct"` // string expression; empty counts requests
	AtLeast  int    `json:"atLeast"`
	// After requires the latest request counted here to be later than the earliest one counted by
	// the previous threshold.
	After bool `json:"after"`
}

// maxCounts bounds a rule's thresholds: each doubles the number of names its marks can have.
const maxCounts = 6

// Duration is a time.Duration written as 90s, 10m, 1h or 14d.
type Duration time.Duration

// UnmarshalJSON decodes the written form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		h, err := time.ParseDuration(days + "h")
		if err != nil {
			return fmt.Errorf("invalid duration %q: want 90s, 10m, 1h or 14d", s)
		}
		*d = Duration(24 * h)
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: want 90s, 10m, 1h or 14d", s)
	}
	*d = Duration(v)
	return nil
}

// Set is a set of rules, compiled. It is immutable and safe for concurrent use.
type Set struct {
	rules []*program // by id
	byRes map[resourceKey][]*program
	any   []*program // rules that name no resource
}

// Rules returns the rules in the order of their ids.
func (s *Set) Rules() []Rule {
	out := make([]Rule, len(s.rules))
	for i, p := range s.rules {
		out[i] = p.rule
	}
	return out
}

// Load reads every .yaml and .yml file at the top of each file system, one rule a file, and
// compiles them. A rule replaces one of the same id of an earlier file system; within one, an id is
// used once. The error names every broken file: syntax, unknown members, and expressions that do
// not compile, with their position.
func Load(dirs ...fs.FS) (*Set, error) {
	env, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("rule language: %w", err)
	}
	byID := map[string]*program{}
	var errs []error
	for _, dir := range dirs {
		entries, err := fs.ReadDir(dir, ".")
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		here := map[string]string{} // id → file
		for _, e := range entries {
			if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
				continue
			}
			text, err := fs.ReadFile(dir, e.Name())
			if err != nil {
				errs = append(errs, fmt.Errorf("read rule: %w", err))
				continue
			}
			p, err := parse(env, e.Name(), text)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if other, taken := here[p.rule.ID]; taken {
				errs = append(errs, fmt.Errorf("%s: id %q is that of %s", e.Name(), p.rule.ID, other))
				continue
			}
			here[p.rule.ID] = e.Name()
			byID[p.rule.ID] = p
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return index(byID), nil
}

// parse reads and compiles one file.
func parse(env *language, file string, text []byte) (*program, error) {
	var r Rule
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: rule %q: %w", file, r.ID, err)
	}
	p, err := compile(env, file, r)
	if err != nil {
		return nil, fmt.Errorf("%s: rule %q: %w", file, r.ID, err)
	}
	return p, nil
}

// check sets defaults and rejects invalid combinations.
func (r *Rule) check() error {
	var (
		idForm     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
		attackForm = regexp.MustCompile(`^T\d{4}(\.\d{3})?$`)
	)
	switch {
	case !idForm.MatchString(r.ID):
		return errors.New("invalid id: want lower-case words joined by dashes")
	case r.Title == "" || r.Description == "":
		return errors.New("title and description are required")
	case !slices.Contains(Severities(), r.Severity):
		return fmt.Errorf("unknown severity %q: want %s", r.Severity, strings.Join(Severities(), ", "))
	}
	for _, a := range r.Attack {
		if !attackForm.MatchString(a) {
			return fmt.Errorf("invalid attack %q: want an ATT&CK technique such as T1078 or T1078.001", a)
		}
	}
	if len(r.GroupBy) == 0 {
		r.GroupBy = []string{"subject"}
	}
	switch w := &r.Window; {
	case r.Kind == KindEvent && (w.Length != 0 || w.Every != 0 || len(r.Counts) > 0 || r.Baseline != 0):
		return errors.New("an event rule takes no window except fold, no counts and no baseline")
	case r.Kind == KindEvent:
		w.Fold = cmp.Or(w.Fold, Duration(time.Hour))
		w.Length = w.Fold
	case r.Kind == KindWindow && (w.Length == 0 || len(r.Counts) == 0):
		return errors.New("a window rule needs window.length and counts")
	case r.Kind == KindWindow && r.Baseline != 0:
		return errors.New("a window rule takes no baseline")
	case r.Kind == KindWindow:
	case r.Kind != KindFirstSeen:
		return fmt.Errorf("unknown kind %q: want %s, %s or %s", r.Kind, KindEvent, KindWindow, KindFirstSeen)
	case r.Baseline <= 0:
		return errors.New("a first-seen rule needs a baseline above 0")
	case *w != (Window{}) || len(r.Counts) > 0:
		return errors.New("a first-seen rule takes no window and no counts")
	default:
		w.Length = Duration(time.Hour) // not used, but a valid pane
	}
	r.Window.Every = cmp.Or(r.Window.Every, r.Window.Length)
	r.Window.Fold = cmp.Or(r.Window.Fold, max(Duration(time.Hour), r.Window.Length))
	switch l, e := r.Window.Length, r.Window.Every; {
	case l < Duration(time.Second) || e < Duration(time.Second) || l%e != 0 || l/e > 120:
		return errors.New("window: every must be at least a second and divide length into at most 120 parts")
	case r.Window.Fold < l:
		return errors.New("window: fold must be at least length")
	case len(r.Counts) > maxCounts:
		return fmt.Errorf("counts: at most %d", maxCounts)
	}
	for i, c := range r.Counts {
		switch {
		case i == 0 && c.After:
			return errors.New("counts[0].after: there is no threshold before it")
		case c.AtLeast < 1 || c.AtLeast > maxDistinct:
			return fmt.Errorf("invalid counts[%d].atLeast: want 1 to %d", i, maxDistinct)
		}
	}
	return nil
}

//go:embed rules/*.yaml
var builtin embed.FS

// BuiltinFiles returns the files of the built-in rules.
func BuiltinFiles() fs.FS {
	sub, err := fs.Sub(builtin, "rules")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
