package authorizertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
)

// recorded is what the bundled recording has of a request.
type recorded struct {
	Verb, RequestURI       string
	User, ImpersonatedUser *struct {
		Username string
		Groups   []string
	}
	ResponseObject json.RawMessage
}

// TestSameAnswersToRecordedRequests sends every distinct request of the bundled recording, on
// the policy it was made under: the roles and bindings of its state, and those that appear in
// its answers.
func TestSameAnswersToRecordedRequests(t *testing.T) {
	objects := map[rbacindex.Key]runtime.Object{}
	keep := func(raw []byte) {
		var kind struct{ Kind, APIVersion string }
		if json.Unmarshal(raw, &kind) != nil || kind.APIVersion != rbacv1.SchemeGroupVersion.String() {
			return
		}
		if o, k, err := rbacindex.FromJSON(kind.Kind, raw); err == nil {
			objects[k] = o.(runtime.Object)
		}
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(read(t, sample.OpenState), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		keep(item)
	}
	calls, seen := []call{}, map[string]bool{}
	eachLine(t, sample.OpenAuditLog, func(line []byte) {
		var e recorded
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if len(e.ResponseObject) > 0 {
			keep(e.ResponseObject)
		}
		c, ok := e.call()
		if id := fmt.Sprint(c); ok && !seen[id] {
			seen[id] = true
			calls = append(calls, c)
		}
	})
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, o)
	}
	w := newWorld(t, all...)
	var n tally
	failures := 0
	for i := range calls {
		if testing.Short() && i%8 > 0 {
			continue
		}
		if text := w.ask(&calls[i], &n); text != "" {
			t.Errorf("%+v: %s", calls[i], text)
			if failures++; failures == 5 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d objects: %+v", len(all), n)
	if n.requests < 1000 || n.allowed < 500 || n.refused < 100 {
		t.Errorf("that is not the whole recording: %+v", n)
	}
}

// call makes the request again; false for what no client could send here.
func (e *recorded) call() (call, bool) {
	method := map[string]string{"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
		"delete": "DELETE", "deletecollection": "DELETE", "post": "POST", "put": "PUT", "head": "HEAD", "options": "OPTIONS"}[e.Verb]
	if method == "" || e.User == nil || e.User.Username == "" {
		return call{}, false
	}
	c := call{method: method, uri: e.RequestURI, user: e.User.Username, groups: e.User.Groups}
	if e.ImpersonatedUser != nil {
		c.asUser, c.asGroups = e.ImpersonatedUser.Username, e.ImpersonatedUser.Groups
	}
	if c.uri == rulesReview || c.uri == accessReview {
		return c, false // the body is not recorded
	}
	r, err := http.NewRequest(method, "http://localhost"+c.uri, nil)
	return c, err == nil && r.URL.Path != "" && !slices.Contains([]string{"/healthz", "/livez", "/readyz"}, r.URL.Path)
}

func read(t *testing.T, open func() (io.ReadCloser, error)) []byte {
	t.Helper()
	in, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func eachLine(t *testing.T, open func() (io.ReadCloser, error), visit func([]byte)) {
	t.Helper()
	in, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		visit(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
