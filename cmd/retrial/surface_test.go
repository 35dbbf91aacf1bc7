package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/test/golden"
)

// The surface is what people and their scripts hold on to: commands, flags and their help,
// the API's paths and parameters, and what both answer about the bundled sample. The golden
// files show a change of it in review; `make golden` rewrites them.

func TestSurfaceHelpGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		fmt.Fprintf(&b, "=== %s\n%s\n\n%s", c.CommandPath(), cmp.Or(c.Long, c.Short), c.UsageString())
		hidden := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				hidden.AddFlag(&pflag.Flag{Name: f.Name, Shorthand: f.Shorthand, Usage: f.Usage, Value: f.Value, DefValue: f.DefValue})
			}
		})
		if hidden.HasFlags() {
			fmt.Fprintf(&b, "\nNot shown:\n%s", hidden.FlagUsages())
		}
		b.WriteByte('\n')
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(cli.Streams{}))
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, surface("help.txt"), strings.ReplaceAll(b.String(), home, "~"))
}

func TestSurfaceRoutesGolden(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, q := range append((&query.Service{}).Questions(), (&doctor.Service{}).Questions()...) {
		method := "GET"
		if q.Action || q.Posted {
			method = "POST"
		}
		var names []string
		for _, p := range q.Parameters() {
			names = append(names, p.Name)
		}
		lines = append(lines, fmt.Sprintf("%s /api/v1/%s %s", method, q.Name, strings.Join(names, " ")))
	}
	slices.Sort(lines)
	golden.File(t, surface("routes.txt"), strings.Join(lines, "\n")+"\n")
}

// TestSurfaceAnswersGolden asks everything there is about the sample, by the API and by the
// commands. Of a long answer the file has its beginning and the hash of the whole.
func TestSurfaceAnswersGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("asks everything of a server; runs without -short")
	}
	in := newInstall(t)
	if err := os.WriteFile(filepath.Join(in.dir, "hmac.key"), []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := in.serve(t, promptly...)
	folder, err := filepath.Abs(filepath.Join("..", "..", "internal", "sample"))
	if err != nil {
		t.Fatal(err)
	}
	state, log := filepath.Join(folder, sample.StateName), filepath.Join(folder, sample.AuditLogName)
	in.run(t, "import", "--cluster", "sample", "--state", state, log).ok(t)
	s.drained(t)
	s.settled(t, "sample",
		findingsByID(t, in.runAlone(t, "findings", "--cluster", "sample", "--state", state, "--events", log, "-o", "json").ok(t).out))
	examples := s.examples(t)
	fill, plain := examples(url.QueryEscape), examples(func(s string) string { return s })
	var b strings.Builder
	for _, q := range surfaceQuestions {
		code, body := s.ask(t, "GET", "/api/v1/"+fill.Replace(q))
		fmt.Fprintf(&b, "=== GET %s\n%d\n%s\n", q, code, excerpt(t, body))
	}
	for _, q := range surfaceRefused {
		method, path, _ := strings.Cut(q, " ")
		code, body := s.ask(t, method, path)
		fmt.Fprintf(&b, "=== %s\n%d\n%s\n", q, code, excerpt(t, body))
	}
	golden.File(t, surface("answers.txt"), steady(b.String()))
	b.Reset()
	for _, line := range surfaceCommands {
		args := strings.Fields(line)
		for i := range args {
			args[i] = plain.Replace(args[i])
		}
		r := in.run(t, args...)
		fmt.Fprintf(&b, "=== retrial %s\n%d\n%s\n", line, r.code, excerpt(t, []byte(r.out)))
		if r.err != "" {
			fmt.Fprintf(&b, "--- standard error\n%s\n", excerpt(t, []byte(r.err)))
		}
	}
	golden.File(t, surface("commands.txt"), strings.ReplaceAll(steady(b.String()), in.dir, "$DIR"))
}

// surfaceQuestions are asked of the API; words in braces come from examples.
var surfaceQuestions = []string{
	"clusters", "classes", "rules",
	"overview?cluster=sample&from={from}&to={to}",
	"events?cluster=sample&limit=3", "events?cluster=sample&limit=3&decision=forbid", "events?cluster=sample&outcome=not_judged&limit=2",
	"events?cluster=sample&subject={user}&verb=get&resource=pods&limit=2&from={from}&to={to}",
	"facets?cluster=sample&keys=verb,code&limit=3", "histogram?cluster=sample&split=decision&steps=5",
	"complete?cluster=sample&kind=subject&prefix=system:node", "events?cluster=sample&limit=2&where=%5B%22verb=get%22,%22code!=200%22%5D",
	"refusals?cluster=sample&limit=5", "policy-changes?cluster=sample&limit=5", "policy-changes?cluster=sample&id={made}",
	"first-uses?cluster=sample&from={from}", "dangers?cluster=sample&limit=5", "dangers?cluster=sample&unused=true&danger=node-proxy",
	"why?auditID={allowed}", "why?auditID={forbidden}&cluster=sample", "why?auditID={allowed}&at={to}",
	"explain-deny?auditID={forbidden}", "explain-deny?auditID={forbidden}&at={to}",
	"who-can?cluster=sample&verb=list&resource=secrets", "who-can?cluster=sample&verb=create&resource=pods/exec&namespace=kube-system",
	"who-can?cluster=sample&verb=get&path=/metrics", "who-can?cluster=sample&verb=get&resource=pods&allNamespaces=true&at={to}",
	"can?cluster=sample&subject={user}", "can?cluster=sample&group=system:authenticated",
	"can?cluster=sample&subject={user}&verb=bind&resource=clusterroles&name=cluster-admin",
	"changes?cluster=sample&from={from}", "escalations?cluster=sample&limit=5",
	"escalations?cluster=sample&subject={user}&includeSystem=true", "hygiene?cluster=sample", "hygiene?cluster=sample&includeSystem=true",
	"drift?cluster=sample", "lineage?cluster=sample&subject={user}&limit=3", "findings?cluster=sample&limit=5&at={to}",
	"subject?cluster=sample&subject={user}&from={from}&to={to}", "suggest?cluster=sample&subject={user}",
	"suggest?cluster=sample&all=true&includeSystem=true&includeUnseen=true",
	"completeness?cluster=sample&from={from}&to={to}&settle=1s", "ask?cluster=sample&question=top-users",
	"ask?cluster=sample&question=denials&values={}", "rejudge?cluster=sample",
}

// surfaceRefused are questions with something wrong.
var surfaceRefused = []string{
	"GET /api/v1/nothing", "DELETE /api/v1/events", "GET /api/v1/events", "GET /api/v1/events?cluster=sample&limit=0",
	"GET /api/v1/events?cluster=sample&outcome=odd", "GET /api/v1/events?cluster=sample&cluster=sample",
	"GET /api/v1/events?cluster=sample&from=yesterday", "GET /api/v1/events?cluster=sample&colour=red",
	"GET /api/v1/events?cluster=sample&where=%5B%22kinds=x%22%5D", "GET /api/v1/facets?cluster=sample&keys=path",
	"GET /api/v1/complete?cluster=sample&kind=things", "GET /api/v1/complete?kind=subject",
	"GET /api/v1/overview?cluster=sample", "GET /api/v1/why", "GET /api/v1/why?auditID=absent",
	"GET /api/v1/who-can?cluster=sample&verb=list", "GET /api/v1/who-can?cluster=sample&verb=list&resource=nothings",
	"GET /api/v1/can?cluster=sample", "GET /api/v1/can?cluster=absent&subject=a", "GET /api/v1/ask?cluster=sample&question=absent",
	"GET /api/v1/suggest?cluster=sample", "GET /api/v1/whatif", "POST /api/v1/whatif?cluster=sample", "POST /api/v1/rejudge?cluster=absent",
}

// surfaceCommands are run against the server.
var surfaceCommands = []string{
	"why {allowed}", "why {forbidden} -o json", "explain-deny {forbidden}", "explain-deny {forbidden} -o yaml", "who-can list secrets",
	"who-can list secrets -o json", "can {user}", "can {user} get pods/web -n default -o yaml",
	"changes --from {from} --to {to}", "changes --from {from} -o json", "escalations", "escalations --include-system -o json", "hygiene",
	"hygiene -o yaml", "dangers", "dangers --unused --danger cluster-admin -o json", "dangers --danger binds", "refusals --limit 20",
	"refusals --subject {user} -o json", "refusals --subject sa/x", "policy-changes --limit 20", "policy-changes --id {made}",
	"policy-changes --id absent", "first-uses", "first-uses --from {from}",
	"findings", "findings -o json", "drift", "drift -o json",
	"lineage {user}", "lineage {user} -o json", "completeness --from {from} --to {to}", "ask", "ask top-users", "ask top-users -o json",
	"ask top-users -o csv", "suggest --cluster sample --subject {user}", "suggest --all -o json",
	"whatif --delete ClusterRoleBinding/a-bot1", "whatif", "whatif --delete ClusterRoleBinding/a-bot1 -o markdown --fail-on revoked",
	"cluster list", "rejudge --list", "tail --lines 2 --for 50ms", "who-can list secrets -o name",
	"findings --min-severity critical -o csv", "can {user} -o jsonpath={.groups}", "hygiene -o wide",
	"ask subject-events --param subject=kubernetes-admim", "findings --subject kubernetes-admim", "why --last --subject kubernetes-admim",
	"evaluate", "who-can", "why", "connect", "drift --fail --output odd",
}

// examples asks the server for what the questions name; what it returns puts that in, written with quote.
func (s *running) examples(t *testing.T) func(quote func(string) string) *strings.Replacer {
	t.Helper()
	var clusters struct {
		Clusters []struct{ First, Last time.Time }
	}
	s.get(t, "clusters", &clusters)
	from, to := clusters.Clusters[0].First, clusters.Clusters[0].Last
	var overview struct{ Subjects []struct{ User string } }
	s.get(t, "overview?cluster=sample&from="+from.Format(time.RFC3339)+"&to="+to.Format(time.RFC3339), &overview)
	one := func(filter string) string {
		var answer struct{ Events []struct{ AuditID string } }
		s.get(t, "events?cluster=sample&limit=1&"+filter, &answer)
		return answer.Events[0].AuditID
	}
	user := ""
	for _, subject := range overview.Subjects {
		if strings.HasPrefix(subject.User, "system:serviceaccount:") {
			user = subject.User
			break
		}
	}
	allowed, forbidden := one("decision=allow&subject="+url.QueryEscape(user)), one("decision=forbid")
	made := one("verb=create&resource=clusterroles&decision=allow&where=%5B%22code=201%22%5D")
	return func(quote func(string) string) *strings.Replacer {
		return strings.NewReplacer("{from}", from.Format(time.RFC3339), "{to}", to.Format(time.RFC3339), "{user}", quote(user), "{allowed}",
			allowed, "{forbidden}", forbidden, "{made}", made)
	}
}

// excerpt is what of an answer stands in a golden file.
func excerpt(t *testing.T, body []byte) string {
	t.Helper()
	const most = 3000
	text := bytes.TrimSpace(body)
	if json.Valid(text) {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", " "); err != nil {
			t.Fatal(err)
		}
		text = b.Bytes()
	}
	text = []byte(steady(string(text)))
	if len(text) <= most {
		return string(text)
	}
	cut := bytes.LastIndexByte(text[:most], '\n') + 1
	return fmt.Sprintf("%s… %d bytes, SHA-256 %x", text[:cut], len(text), sha256.Sum256(text))
}

// unsteady is what differs from run to run: ages and moments of this run.
var unsteady = regexp.MustCompile(`("(?:received|generatedAt|lastPost|seconds|took)": )(?:"[^"]*"|[0-9.]+)|(, in )[0-9.]+ s;`)

func steady(text string) string { return unsteady.ReplaceAllString(text, "$1$2…") }

func surface(name string) string { return filepath.Join("cmd", "retrial", "testdata", "surface", name) }
