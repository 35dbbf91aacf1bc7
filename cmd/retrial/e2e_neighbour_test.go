package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retrial-io/retrial/test/policyshape"
)

// liveEvent is an event of now as an apiserver posts it.
func liveEvent(t *testing.T, id, user, verb, uri string, code int, reason string, object any) []byte {
	t.Helper()
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	e := map[string]any{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id,
		"stage": "ResponseComplete", "requestURI": uri, "verb": verb,
		"user": map[string]any{"username": user, "groups": []string{"system:authenticated"}}, "sourceIPs": []string{"10.0.0.1"},
		"userAgent": "kubectl", "responseStatus": map[string]any{"metadata": map[string]any{}, "code": code},
		"requestReceivedTimestamp": at, "stageTimestamp": at,
		"annotations": map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": reason}}
	if object != nil {
		e["requestObject"], e["responseObject"] = object, object
	}
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// listFile writes objects as kubectl lists them, and returns the file and its size.
func listFile(t *testing.T, path string, objects []any) int {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]string{"resourceVersion": "5000"},
		"items": objects})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// answered waits until a request is judged, and returns the verdict: a word for a match, else with class and cause.
func (s *running) answered(t *testing.T, cluster, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := "http://retrial/api/v1/why?" + url.Values{"auditID": {id}, "cluster": {cluster}}.Encode()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.local.Do(req)
		if err != nil {
			t.Fatalf("%s of %s is not answered: %v", id, cluster, err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		var why struct {
			Requests []struct {
				Verdict *struct {
					Verdict, Class, Cause string
				} `json:"verdict"`
			} `json:"requests"`
		}
		if err == nil && res.StatusCode == http.StatusOK && json.Unmarshal(body, &why) == nil && len(why.Requests) > 0 &&
			why.Requests[0].Verdict != nil {
			v := why.Requests[0].Verdict
			return strings.TrimSpace(v.Verdict + " " + v.Class + " " + v.Cause)
		}
		if err := sleepFor(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("%s of %s is not answered", id, cluster)
		}
	}
}

// TestNeighbour asks for the requests of one cluster while another writes policies whose lists
// multiply to millions, in the same process. All of its requests are matches, and the process
// stays in proportion to the policy. How long it took from acknowledgement to answer, alone and
// beside the other, is logged (make neighbour).
func TestNeighbour(t *testing.T) {
	if testing.Short() {
		t.Skip("its bound of memory is that of a build without the race detector, tested without -short")
	}
	t.Parallel()
	rounds := 4
	if text := os.Getenv("RETRIAL_NEIGHBOUR_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	in := newInstall(t)
	role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "reader", UID: "r", ResourceVersion: "1"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	bound := func(name, role, user string, version int) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	}
	small, large := filepath.Join(in.dir, "small.json"), filepath.Join(in.dir, "large.json")
	listFile(t, small, []any{role, bound("readers", "reader", "alice", 2)})
	hostile := policyshape.Products()
	size := listFile(t, large, hostile.Objects)

	s := in.serve(t)
	quiet, loud := s.addCluster(t, "quiet"), s.addCluster(t, "loud")
	in.run(t, "import", "--cluster", "quiet", "--state", small).ok(t)
	n := 0
	phase := func(before func()) (took []time.Duration) {
		for range rounds {
			before()
			n++
			id := fmt.Sprint("quiet-", n)
			quiet.deliver(t,
				eventList([][]byte{liveEvent(t, id, "alice", "get", fmt.Sprint("/api/v1/namespaces/shop/pods/web-", n), 200,
					`RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "alice"`, nil)}))
			began := time.Now()
			if got := s.answered(t, "quiet", id); got != "match" {
				t.Errorf("%s is %s", id, got)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	alone := phase(func() {})
	idle := s.peakRSS(t)

	in.run(t, "import", "--cluster", "loud", "--state", large).ok(t)
	posts := 0
	beside := phase(func() {
		for range 20 {
			posts++
			list := [][]byte{liveEvent(t, fmt.Sprint("loud-", posts), "user-1", "create",
				"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", 201, "",
				bound(fmt.Sprint("new-", posts), fmt.Sprint("role-", posts%60), "user-2", 6000+posts))}
			for i := range 50 {
				at := (posts + i) % len(hostile.Groups)
				list = append(list, liveEvent(t, fmt.Sprintf("loud-%d-%d", posts, i), fmt.Sprint("user-", i), hostile.Verbs[at],
					"/apis/"+hostile.Groups[at]+"/v1/namespaces/x/"+hostile.Resources[at]+"/"+hostile.Names[at], 200, "", nil))
			}
			loud.deliver(t, eventList(list))
		}
	})
	peak := s.peakRSS(t)
	p99 := func(took []time.Duration) time.Duration { return took[(len(took)*99-1)/100].Round(time.Millisecond) }
	t.Logf("%d requests: alone p50 %s, p99 %s; beside %d posts of 51 events p50 %s, p99 %s; peak RSS %d MiB, then %d, policy %d MiB",
		rounds,
		alone[rounds/2].Round(time.Millisecond), p99(alone), posts, beside[rounds/2].Round(time.Millisecond), p99(beside), idle>>20,
		peak>>20, size>>20)
	// Ordinary requests at this rate take about 120 MiB more than the process had when it was idle; beside other
	// tests the collector comes later.
	room := int64(256 << 20)
	if os.Getenv("RETRIAL_NEIGHBOUR_ROUNDS") != "" {
		room = 64 << 20
	}
	if most := 2*idle + 4*int64(size) + room; peak > most {
		t.Errorf("peak RSS %d MiB, before %d; want at most %d", peak>>20, idle>>20, most>>20)
	}
}
