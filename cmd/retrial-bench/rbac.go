package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/linearscan"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/verdict"
)

// newBenchRBAC measures the linear scan next to the index:
//
//	--state, --events ─▶ replay/evaluate ─┬─▶ requests that reach RBAC ─┬─▶ internal/linearscan ─▶ CPU a decision
//	                                      └─▶ policy at the end ────────┴─▶ rbacindex ───────────▶ CPU a decision
func newBenchRBAC(s cli.Streams) *cobra.Command {
	var b rbacBench
	var output string
	c := &cobra.Command{
		Use:   "rbac --state FILE|DIR --events FILE...",
		Short: "Measure what the linear scan of Kubernetes' RBAC authorizer costs on your own policy and log",
		Long: `Decide the requests of an audit log that reach RBAC by the policy as it is at the log's end: once
by going through all ClusterRoleBindings and the namespace's RoleBindings for every request, as
kube-apiserver does, once by the index. Print the CPU time of a decision and how many cores the scan
takes at the log's rate of requests, and say whether that matters.

An audit log has the requests its policy records. If that is not all, give the true rate with --rate:
  sum(rate(apiserver_request_total[5m]))`,
		Example: `  retrial bench rbac --state state.json --events audit.log
  retrial bench rbac --state state.json --events audit.log --rate 2000 --add-bindings 50000`,
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case len(b.events) == 0:
				return cli.UsageError(c, "--events is missing: name an audit log, or - for standard input")
			case b.rate < 0 || b.add < 0 || b.add > mostAddedBindings || b.spend <= 0:
				return cli.UsageError(c, "invalid --rate, --add-bindings or --time: want at least 0, 0 to %d, and above 0",
					mostAddedBindings)
			}
			r, err := b.run(c.Context(), s)
			if err != nil {
				return err
			}
			return show(s, output, r)
		},
	}
	c.Flags().StringSliceVar(&b.states, "state", nil, "state file, or folder of state files that form one listing; may be repeated")
	c.Flags().StringSliceVar(&b.events, "events", nil, "audit log, - for standard input; may be repeated")
	c.Flags().BoolVar(&b.fromEmpty, "from-empty", false, "the log begins with the cluster's first start: there was nothing before it")
	c.Flags().
		StringSliceVar(&b.apiservers, "apiserver-config", nil, "folder with the configuration of the cluster's apiserver "+
			"(docs/apiserver-config.md)")
	c.Flags().Float64Var(&b.rate, "rate", 0, "requests a second that reach RBAC, instead of the log's (0: the log's)")
	c.Flags().
		IntVar(&b.add, "add-bindings", 0, "add this many ClusterRoleBindings, each of another user, to see the cost in a larger cluster")
	c.Flags().DurationVar(&b.spend, "time", 3*time.Second, "CPU time to spend on each method")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

const (
	mostAddedBindings = 1_000_000
	sampledRequests   = 50_000 // kept of the log, each as likely as any other
)

// rbacBench holds the flags of bench rbac, and what it collects from the log.
type rbacBench struct {
	states, events, apiservers []string
	fromEmpty                  bool
	rate                       float64
	add                        int
	spend                      time.Duration

	result  rbacResult
	minutes map[int64]int64 // requests that reach RBAC, by minute of receipt
	first   time.Time
	last    time.Time
	sample  []rbacindex.Attributes
	random  *rand.Rand
}

// rbacResult is what `bench rbac -o json` prints. Costs are CPU time, garbage collection
// included; cores are those costs times a rate.
type rbacResult struct {
	ClusterRoleBindings int     `json:"cluster_role_bindings"`
	RoleBindings        int     `json:"role_bindings"`
	Requests            int64   `json:"requests"`   // of the log
	ReachRBAC           int64   `json:"reach_rbac"` // of these, no earlier authorizer decided
	Seconds             float64 `json:"seconds"`    // from the first of these to the last
	Rate                float64 `json:"requests_per_second"`
	BusiestRate         float64 `json:"busiest_requests_per_second"` // of the busiest minute; Rate when that was given
	ScanUS              float64 `json:"scan_us_per_decision"`
	IndexUS             float64 `json:"index_us_per_decision"`
	ScanCores           float64 `json:"scan_cores"`
	BusiestScanCores    float64 `json:"busiest_scan_cores"`
	IndexCores          float64 `json:"index_cores"`
	Answer              string  `json:"answer"`

	given bool // the rate is not the log's
}

func (b *rbacBench) run(ctx context.Context, s cli.Streams) (*rbacResult, error) {
	b.minutes, b.random = map[int64]int64{}, rand.New(rand.NewPCG(1, 2))
	st := state.New(server.OfflineCluster)
	log := server.Log{States: b.states, Events: b.events, FromEmpty: b.fromEmpty, Apiservers: b.apiservers, Streams: s}
	_, err := log.Replay(ctx, 0, func(o *evaluate.Options) { o.State, o.Sink = st, b.observe })
	if err != nil {
		return nil, err
	}
	if len(b.sample) == 0 {
		return nil, fmt.Errorf("%s: no request reaches RBAC", strings.Join(b.events, ", "))
	}
	view := &st.RBACWindow(query.Latest, query.Latest)[0]
	if len(view.UnknownKinds) > 0 {
		return nil, errors.New("the cluster's roles and bindings are not known: give a listing of them with --state")
	}
	var objects []any
	view.RBAC.All(func(_ rbacindex.Key, o any) bool {
		objects = append(objects, o)
		return true
	})
	if err := b.measure(ctx, append(objects, addedBindings(b.add)...)); err != nil {
		return nil, err
	}
	b.conclude()
	return &b.result, nil
}

// observe records what is needed to measure a request that RBAC decided.
func (b *rbacBench) observe(e *event.Event, v *verdict.Verdict) error {
	b.result.Requests++
	if !slices.ContainsFunc(v.Chain, func(step verdict.ChainStep) bool {
		return step.Authorizer == verdict.AuthorizerRBAC && step.Answer != verdict.AnswerNotAsked
	}) {
		return nil
	}
	b.result.ReachRBAC++
	at := e.RequestReceivedTimestamp
	b.minutes[at.Unix()/60]++
	if b.first.IsZero() || at.Before(b.first) {
		b.first = at
	}
	if at.After(b.last) {
		b.last = at
	}
	place := len(b.sample)
	if place >= sampledRequests {
		if place = b.random.IntN(int(b.result.ReachRBAC)); place >= sampledRequests {
			return nil
		}
	} else {
		b.sample = append(b.sample, rbacindex.Attributes{})
	}
	u, a := e.EffectiveUser(), &v.Attributes
	groups := make([]string, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = strings.Clone(g)
	}
	b.sample[place] = rbacindex.Attributes{
		User: strings.Clone(u.Username), Groups: groups, Verb: strings.Clone(a.Verb), Namespace: strings.Clone(a.Namespace),
		APIGroup: strings.Clone(a.APIGroup), Resource: strings.Clone(a.Resource), Subresource: strings.Clone(a.Subresource),
		Name: strings.Clone(a.Name), ResourceRequest: a.ResourceRequest, Path: strings.Clone(a.Path),
	}
	return nil
}

// addedBindings returns n ClusterRoleBindings, to a role that allows hardly anything, of users who
// make no request: every request passes them.
func addedBindings(n int) []any {
	if n == 0 {
		return nil
	}
	const role = "retrial-bench-added"
	out := []any{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"retrial.io"}, Resources: []string{"nothing"}},
	}}}
	for i := range n {
		out = append(out, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%06d", role, i)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("%s-user-%06d", role, i)}},
		})
	}
	return out
}

// measure decides the sampled requests both ways, in random order. A disagreement is an error: the
// two figures would not be comparable.
func (b *rbacBench) measure(ctx context.Context, objects []any) error {
	scan, err := linearscan.New(objects)
	if err != nil {
		return err
	}
	index, err := rbacindex.New(objects...)
	if err != nil {
		return err
	}
	_, _, b.result.RoleBindings, b.result.ClusterRoleBindings = index.Len()
	b.random.Shuffle(len(b.sample), func(i, j int) { b.sample[i], b.sample[j] = b.sample[j], b.sample[i] })
	records := make([]authorizer.Attributes, len(b.sample))
	for i := range b.sample {
		a := &b.sample[i]
		records[i] = authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: a.User, Groups: a.Groups}, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup,
			Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
		}
	}
	scanned := make([]bool, 0, len(records))
	if b.result.ScanUS, err = b.each(ctx, func(i int) error {
		allowed, err := scan.Allows(records[i])
		if len(scanned) < len(records) {
			scanned = append(scanned, allowed)
		}
		return err
	}); err != nil {
		return err
	}
	buf := make([]rbacindex.Grant, 0, 512)
	for i := range b.sample { // subjects become known, as those of a running server are
		allowed := index.Authorize(&b.sample[i], buf).Allowed
		if i < len(scanned) && scanned[i] != allowed {
			return fmt.Errorf("the index and the linear scan disagree on %q %s: please report this", b.sample[i].User, b.sample[i].Verb)
		}
	}
	b.result.IndexUS, err = b.each(ctx, func(i int) error {
		index.Authorize(&b.sample[i], buf)
		return nil
	})
	return err
}

// each runs decide for the sampled requests, again and again, until it has used the time, and
// returns the µs of CPU of one.
func (b *rbacBench) each(ctx context.Context, decide func(i int) error) (float64, error) {
	runtime.GC()
	began, n := procstat.Own(), 0
	for {
		for range min(32, len(b.sample)) {
			if err := decide(n % len(b.sample)); err != nil {
				return 0, err
			}
			n++
		}
		used := procstat.Own() - began
		if used >= b.spend {
			return float64(used.Nanoseconds()) / 1000 / float64(n), nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// From when on the scan is worth a thought, and from when on it matters: cores in the busiest
// minute, and µs it adds to a request.
const (
	someCores, manyCores = 0.01, 0.1
	someUS, manyUS       = 100, 1000
)

// conclude computes rates and cores, and the answer.
func (b *rbacBench) conclude() {
	r := &b.result
	r.Seconds = b.last.Sub(b.first).Seconds()
	if r.Rate, r.BusiestRate, r.given = b.rate, b.rate, b.rate > 0; !r.given {
		r.Rate = float64(r.ReachRBAC) / max(1, r.Seconds)
		for _, n := range b.minutes {
			r.BusiestRate = max(r.BusiestRate, float64(n)/60)
		}
		r.BusiestRate = max(r.BusiestRate, r.Rate)
	}
	r.ScanCores, r.BusiestScanCores, r.IndexCores = r.Rate*r.ScanUS/1e6, r.BusiestRate*r.ScanUS/1e6, r.Rate*r.IndexUS/1e6
	at := "in the busiest minute"
	if r.given {
		at = "at this rate"
	}
	takes := fmt.Sprintf("%s it takes %s of a core and adds %s to a request", at, percent(r.BusiestScanCores), micros(r.ScanUS))
	switch {
	case r.BusiestScanCores >= manyCores || r.ScanUS >= manyUS:
		r.Answer = "The linear scan matters here: " + takes + "."
	case r.BusiestScanCores >= someCores || r.ScanUS >= someUS:
		r.Answer = "The linear scan can be noticed here: " + takes + "."
	default:
		r.Answer = fmt.Sprintf("The linear scan does not matter here: %s. A tenth of a core would take %s requests a second.",
			takes, phrase.Thousands(int64(manyCores*1e6/r.ScanUS)))
	}
}

func (r *rbacResult) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "bindings\t%s ClusterRoleBindings, %s RoleBindings\n", phrase.Thousands(int64(r.ClusterRoleBindings)),
		phrase.Thousands(int64(r.RoleBindings)))
	fmt.Fprintf(t, "requests\t%s in the log, %s reach RBAC, in %s\n", phrase.Thousands(r.Requests), phrase.Thousands(r.ReachRBAC),
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	rate, scan := fmt.Sprintf("%.1f a second", r.Rate), fmt.Sprintf("%s a decision, %.6f cores", micros(r.ScanUS), r.ScanCores)
	if !r.given {
		rate += fmt.Sprintf(", %.1f in the busiest minute", r.BusiestRate)
		scan += fmt.Sprintf(", %.6f in the busiest minute", r.BusiestScanCores)
	}
	fmt.Fprintf(t, "rate\t%s\n", rate)
	fmt.Fprintf(t, "linear scan\t%s\n", scan)
	fmt.Fprintf(t, "index\t%s a decision, %.6f cores\n", micros(r.IndexUS), r.IndexCores)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Answer)
	return err
}

// micros formats a cost in µs.
func micros(us float64) string {
	if us < 1 {
		return fmt.Sprintf("%.0f ns", us*1000)
	}
	if us < 1000 {
		return fmt.Sprintf("%.1f µs", us)
	}
	return fmt.Sprintf("%.1f ms", us/1000)
}

// percent writes a share, of one or of several cores.
func percent(share float64) string {
	switch p := share * 100; {
	case p < 0.01:
		return "less than 0.01 %"
	case p < 1:
		return fmt.Sprintf("%.2f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}
