package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/query/resource"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// CompleteAnswer are values that begin with a text, or contain it.
type CompleteAnswer struct {
	Kind   string           `json:"kind"`   // of the values
	Values []CompletedValue `json:"values"` // the most likely first
	More   bool             `json:"more"`   // there are more
}

// CompletedValue is a value and what is known of it.
type CompletedValue struct {
	Value string `json:"value"`          // the name
	Kind  string `json:"kind,omitempty"` // of a subject, role or binding; the outcome of a class
	// Requests counts those that have it, whenever they were made; of a cluster its events. 0 for what the policy alone names, and for
	// kinds that are not counted.
	Requests int64 `json:"requests"`
	weight   int64
}

// CompleteRequest asks which names of a kind begin with a text, or contain it, in any case: those that begin with it come first, then those
// that requests have most often. They come from what is counted of requests and from the policy as last known; no event is read. Long
// tails of paths are folded to *, and objects' names are those of the events that are kept.
type CompleteRequest struct {
	Asks[CompleteAnswer] `question:"complete"`
	Kind                 string `json:"kind" required:"true" enum:"cluster,subject,group,namespace,resource,verb,name,path,userAgent,rule,role,binding,class" help:"what the text is the beginning of; a rule is one of detections"`
	Cluster              string `json:"cluster" help:"cluster the question is about; clusters, rules and classes need none"`
	Prefix               string `json:"prefix" help:"the text (default: all values)"`
	Resource             string `json:"resource" help:"of a name: the resource of the object, without group"`
	Namespace            string `json:"namespace" help:"of a name: the namespace of the object (default: any)"`
	Limit                int    `json:"limit" default:"20" min:"1" max:"200" help:"most values"`
}

func (r CompleteRequest) check() error {
	switch {
	case r.Kind == "cluster" || r.Kind == "rule" || r.Kind == "class":
	case r.Cluster == "":
		return Bad("cluster is missing")
	case r.Kind == "name" && r.Resource == "":
		return Bad("resource is missing: names are those of one resource's objects")
	}
	return nil
}

// Complete answers which names there are.
func (a *Service) Complete(ctx context.Context, tables Tables, q CompleteRequest) (out CompleteAnswer, err error) {
	var all []CompletedValue
	switch q.Kind {
	case "cluster":
		all, err = a.clusterNames(ctx)
	case "rule":
		for _, r := range a.Store.DetectionRules() {
			all = append(all, CompletedValue{Value: r.ID})
		}
	case "class":
		for _, c := range verdict.Classes() {
			all = append(all, CompletedValue{Value: c.Class, Kind: c.Outcome.String()})
		}
	default:
		all, err = a.namesOfCluster(ctx, tables, &q)
	}
	if err != nil {
		return out, err
	}
	out = CompleteAnswer{Kind: q.Kind, Values: matching(all, q.Prefix)}
	if out.More = len(out.Values) > q.Limit; out.More {
		out.Values = out.Values[:q.Limit]
	}
	return out, nil
}

// matching returns the values that contain a text, in order, each once.
func matching(all []CompletedValue, text string) []CompletedValue {
	out, at := []CompletedValue{}, map[[2]string]int{}
	text = strings.ToLower(text)
	for _, v := range all {
		if !strings.Contains(strings.ToLower(v.Value), text) {
			continue
		}
		key := [2]string{v.Kind, v.Value}
		if i, ok := at[key]; ok { // known both by requests and by the policy
			out[i].Requests, out[i].weight = max(out[i].Requests, v.Requests), max(out[i].weight, v.weight)
			continue
		}
		at[key] = len(out)
		out = append(out, v)
	}
	begins := func(v *CompletedValue) int {
		if strings.HasPrefix(strings.ToLower(v.Value), text) {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(x, y CompletedValue) int {
		return cmp.Or(begins(&x)-begins(&y), cmp.Compare(y.weight, x.weight), strings.Compare(x.Value, y.Value),
			strings.Compare(x.Kind, y.Kind))
	})
	return out
}

func (a *Service) clusterNames(ctx context.Context) (out []CompletedValue, err error) {
	clusters, err := a.Clusters(ctx, ClustersRequest{})
	if err != nil {
		return nil, err
	}
	for _, c := range clusters.Clusters {
		out = append(out, CompletedValue{Value: c.Name, Requests: c.Events, weight: c.Events})
	}
	for _, name := range clusters.Quiet {
		out = append(out, CompletedValue{Value: name})
	}
	return out, nil
}

// namesOfCluster returns what requests have, the first of those that match, and what the policy has.
func (a *Service) namesOfCluster(ctx context.Context, tables Tables, q *CompleteRequest) (out []CompletedValue, err error) {
	if q.Kind != "role" && q.Kind != "binding" {
		list, err := tables.Completions(ctx, queries.Completing{Cluster: q.Cluster, Kind: q.Kind, Text: q.Prefix, Resource: q.Resource,
			Namespace: q.Namespace, Limit: q.Limit + 1})
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			v := CompletedValue{Value: c.Value, weight: c.Weight}
			if q.Kind == "subject" || q.Kind == "userAgent" || q.Kind == "name" {
				v.Requests = c.Weight
			}
			out = append(out, v)
		}
	}
	st, err := a.Replay.State(ctx, q.Cluster, Latest)
	if err != nil {
		return nil, err
	}
	if st != nil {
		for _, v := range namesOfPolicy(st, q.Kind) {
			if q.Kind == "role" || q.Kind == "binding" {
				out = append(out, v)
			} else if v.Value != "" && v.Value != rbacv1.ResourceAll {
				out = append(out, CompletedValue{Value: v.Value})
			}
		}
	}
	if q.Kind == "subject" {
		for i := range out {
			out[i].Kind = kindOfUser(out[i].Value)
		}
	}
	return out, nil
}

// kindOfUser says what a user name is of.
func kindOfUser(name string) string {
	if _, _, ok := kubenames.SplitServiceAccount(name); ok {
		return rbacv1.ServiceAccountKind
	}
	if strings.HasPrefix(name, kubenames.NodePrefix) {
		return "Node"
	}
	return rbacv1.UserKind
}

// namesOfPolicy returns the names of a kind that the newest policy has.
func namesOfPolicy(st *state.State, kind string) (out []CompletedValue) {
	policy := st.RBAC(Latest).RBAC
	add := func(names ...string) {
		for _, n := range names {
			out = append(out, CompletedValue{Value: n})
		}
	}
	switch kind {
	case "subject":
		add(known.Users(policy)...)
		there, _ := st.ServiceAccounts(Latest)
		for _, x := range there {
			add(kubenames.ServiceAccount(x.Namespace, x.Name))
		}
	case "namespace":
		there, _ := st.ServiceAccounts(Latest)
		for _, x := range there {
			add(x.Namespace)
		}
	case "verb":
		for v := range resource.NamedIn(policy).Verbs {
			add(v)
		}
	case "resource":
		for name, groups := range resource.NamedIn(policy).Resources {
			for _, g := range groups {
				head, sub, _ := strings.Cut(name, "/")
				if r := (ResourceWord{Name: head, Group: g, Sub: sub}); g != rbacv1.APIGroupAll && head != rbacv1.ResourceAll {
					add(r.String())
				}
			}
		}
		for name, g := range resource.Builtin {
			r := ResourceWord{Name: name, Group: g}
			add(r.String())
		}
	}
	policy.All(func(k rbacindex.Key, object any) bool {
		subjects, _, binds := rbacindex.BindingOf(object)
		switch {
		case kind == "namespace":
			add(k.Namespace)
		case kind == "role" && !binds, kind == "binding" && binds:
			name := k.Name
			if k.Namespace != "" {
				name = k.Namespace + "/" + name
			}
			out = append(out, CompletedValue{Value: name, Kind: k.Kind.String()})
		case kind == "group":
			for _, s := range subjects {
				if s.Kind == rbacv1.GroupKind {
					add(s.Name)
				}
			}
		}
		return true
	})
	return out
}
