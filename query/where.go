package query

import (
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Filters select requests of a cluster and a range. All are exact.
type Filters struct {
	Cluster  string    `json:"cluster" required:"true" help:"cluster the question is about"`
	From     time.Time `json:"from" help:"requests at or after this time"`
	To       time.Time `json:"to" help:"requests before this time"`
	Subject  string    `json:"subject" old:"user" help:"whom the request was authorized as"`
	Verb     string    `json:"verb" help:"verb of the request"`
	Resource string    `json:"resource" help:"resource of the request, without group"`
	Decision string    `json:"decision" enum:"allow,forbid,none" help:"decision the apiserver recorded"`
	Outcome  string    `json:"outcome" enum:"match,drift,ambiguous,indeterminate,not_judged" help:"outcome of the verdict"`
	Class    string    `json:"class" help:"class of the verdict, one of those of classes"`
	Where    []string  `json:"where" list:"json" help:"more of them, as KEY=VALUE, KEY!=VALUE, KEY^=BEGIN or KEY!^=BEGIN: the values of one key are alternatives, different keys restrict each other, what ! names is left out in any case; keys are subject, user (who authenticated), impersonated, group, verb, apiGroup, resource, subresource, namespace, name, path (without query), code, refused and system (yes or no: whether it was refused, by whomever; whether its subject is Kubernetes' own), decision, replayed, outcome, class, authorizer, apiserver, userAgent, sourceIP, credential, auditID and rule (of detections, that a request counts for: a finding may take several); an empty value is none"`
}

func (r Filters) check() error {
	if r.Class != "" && verdict.Explain(r.Class) == "" {
		return Bad("unknown class %q: see api/v1/classes", r.Class)
	}
	if _, err := conditionsOf(r.Where); err != nil {
		return err
	}
	return before(r.From, r.To)
}

// filter returns the filters as the store takes them; they have been checked.
func (r *Filters) filter() (f queries.EventFilter, err error) {
	f = queries.EventFilter{Cluster: r.Cluster, From: r.From, To: r.To, Subject: r.Subject, Verb: r.Verb, Resource: r.Resource,
		Recorded: r.Decision, Outcome: r.Outcome, Class: r.Class, Judged: true}
	f.Where, err = conditionsOf(r.Where)
	return f, err
}

// marked returns an error where requests are selected or counted by the rules they count for, and these are not known.
func (a *Service) marked(f *queries.EventFilter, keys ...string) error {
	if a.Offline && (slices.Contains(keys, "rule") ||
		slices.ContainsFunc(f.Where, func(c queries.Condition) bool { return c.Column == "rule" })) {
		return Bad("which rules a request counts for is not known of a log: import it with retrial import, and ask the server")
	}
	return nil
}

// mostConditions bounds the conditions of one question.
const mostConditions = 100

// conditionsOf reads conditions.
func conditionsOf(list []string) (out []queries.Condition, err error) {
	if len(list) > mostConditions {
		return nil, Bad("where has %d conditions; at most %d are taken", len(list), mostConditions)
	}
	for _, text := range list {
		c, err := conditionOf(text)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func conditionOf(text string) (c queries.Condition, err error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return c, Bad("invalid where %q: want KEY=VALUE, KEY!=VALUE, KEY^=BEGIN or KEY!^=BEGIN", text)
	}
	c.Value = value
	key, c.Begins = strings.CutSuffix(key, "^")
	c.Column, c.Not = strings.CutSuffix(key, "!")
	columns, _ := queries.Columns()
	if err := oneOfColumns("where", c.Column, columns); err != nil {
		return c, err
	}
	if c.Begins {
		return c, nil
	}
	switch c.Column {
	case "outcome":
		return c, oneOf(text, value, Outcomes)
	case "decision", "replayed":
		return c, oneOf(text, value, []string{"allow", "forbid", "none"})
	case "refused", "system":
		return c, oneOf(text, value, []string{"yes", "no"})
	case "class":
		if value != "" && verdict.Explain(value) == "" {
			return c, Bad("invalid where %q: unknown class, see api/v1/classes", text)
		}
	case "code":
		if strings.Trim(value, "0123456789") != "" || value == "" || len(value) > 4 {
			return c, Bad("invalid where %q: a code is a number, such as 403", text)
		}
	}
	return c, nil
}

// oneOf returns an error unless a condition's value is one there is.
func oneOf(text, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return Bad("invalid where %q: want one of %s", text, strings.Join(values, ", "))
}

// oneOfColumns returns an error unless a column is one there is.
func oneOfColumns(parameter, name string, columns []string) error {
	if slices.Contains(columns, name) {
		return nil
	}
	return Bad("invalid %s: unknown key %q%s: want one of %s", parameter, name, didYouMean(Nearest(name, columns, mostNear)),
		strings.Join(columns, ", "))
}
