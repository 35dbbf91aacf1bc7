package watchtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// kinds by resource, as typed lists name them.
var kinds = map[string]string{
	"roles": "Role", "clusterroles": "ClusterRole", "rolebindings": "RoleBinding", "clusterrolebindings": "ClusterRoleBinding",
	"namespaces": "Namespace", "serviceaccounts": "ServiceAccount",
	"nodes": "Node", "pods": "Pod", "persistentvolumes": "PersistentVolume", "volumeattachments": "VolumeAttachment",
	"resourceslices": "ResourceSlice", "certificatesigningrequests": "CertificateSigningRequest",
	"podcertificaterequests": "PodCertificateRequest",
	secrets:                  kindPartial,
}

// Secrets are served as metadata only, to requests for that.
const (
	secrets     = "secrets"
	kindPartial = "PartialObjectMetadata"
)

// partial returns the metadata of an object.
func partial(raw []byte) []byte {
	var o struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &o) // written by Put
	return append(append([]byte(`{"kind":"`+kindPartial+`","apiVersion":"meta.k8s.io/v1","metadata":`), o.Metadata...), '}')
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.update(func() { s.requests = append(s.requests, r.URL.RequestURI()) })
	if r.Header.Get("Authorization") != "Bearer "+Token {
		status(w, http.StatusUnauthorized, "Unauthorized", "no or a wrong token")
		return
	}
	if kinds[resource] == "" || r.Method != http.MethodGet {
		status(w, http.StatusNotFound, "NotFound", "the test server does not serve "+r.Method+" "+r.URL.Path)
		return
	}
	if resource == secrets && !strings.Contains(r.Header.Get("Accept"), "as="+kindPartial) {
		status(w, http.StatusTeapot, "Leak", "secrets were requested in full")
		return
	}
	identity := r.URL.Query().Get("fieldSelector") != ""
	for {
		s.mu.Lock()
		held, code, changed := s.held[resource] && !identity, s.refusals[resource], s.changed
		s.mu.Unlock()
		if code != 0 {
			reason := map[int]string{403: "Forbidden", 401: "Unauthorized", 410: "Expired"}[code]
			status(w, code, reason, resource+" is refused")
			return
		}
		if !held {
			break
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, resource)
		return
	}
	s.list(w, r, resource)
}

// list answers with a page. A continuation carries the version and the key it goes on after.
func (s *Server) list(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	version, after := s.rv, ""
	if token := q.Get("continue"); token != "" {
		b, _ := base64.RawURLEncoding.DecodeString(token)
		at, key, _ := strings.Cut(string(b), " ")
		version, _ = strconv.Atoi(at)
		after = key
		if version < s.compacted || s.expire[resource] {
			status(w, http.StatusGone, "Expired", "the provided continue parameter is too old")
			return
		}
	}
	var items []object
	for _, o := range s.objects {
		// Objects changed since the first page are left as they are now: tests that
		// change them during a listing rely on no more.
		if o.resource != resource || o.key <= after || o.rv > version {
			continue
		}
		if sel, ok := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name="); ok && !strings.HasSuffix(o.key, "/"+sel) {
			continue
		}
		items = append(items, o)
	}
	slices.SortFunc(items, func(a, b object) int { return strings.Compare(a.key, b.key) })
	meta := map[string]any{"resourceVersion": strconv.Itoa(version)}
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(items) > limit {
		items = items[:limit]
		meta["continue"] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", version, items[limit-1].key))
	}
	raws := make([]json.RawMessage, len(items))
	for i := range items {
		raws[i] = items[i].json
		if resource == secrets {
			raws[i] = partial(items[i].json)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client is gone when this fails
		"kind": kinds[resource] + "List", "apiVersion": apiVersion(resource), "metadata": meta, "items": raws,
	})
}

func apiVersion(resource string) string {
	switch resource {
	case secrets:
		return "meta.k8s.io/v1"
	case "volumeattachments":
		return "storage.k8s.io/v1"
	case "resourceslices":
		return "resource.k8s.io/v1"
	case "certificatesigningrequests", "podcertificaterequests":
		return "certificates.k8s.io/v1"
	case "roles", "clusterroles", "rolebindings", "clusterrolebindings":
		return "rbac.authorization.k8s.io/v1"
	}
	return "v1"
}

// watch streams changes until the client leaves or the test ends it.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, resource string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	began, gone, asCode, at := s.cuts[resource], from < s.compacted, s.goneCodes, 0
	s.mu.Unlock()
	if gone && asCode {
		status(w, http.StatusGone, "Expired", "too old resource version")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	if gone {
		fmt.Fprintf(
			w,
			`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}`+"\n",
		)
		return
	}
	s.update(func() { s.watches[resource]++ })
	defer s.update(func() { s.watches[resource]-- })
	first := true
	for {
		s.mu.Lock()
		if at > len(s.history) {
			at = 0 // compacted
		}
		var frames []byte
		for ; at < len(s.history); at++ {
			c := s.history[at]
			if c.resource == resource && (c.rv > from || c.rv == from && c.kind == "BOOKMARK" && !first) {
				frames = append(frames, frame(c)...)
			}
		}
		cut, changed := s.cuts[resource], s.changed
		s.mu.Unlock()
		first = false
		if cut.times != began.times && !cut.orderly {
			frames = append(frames, `{"type":"ADDED","object":{"kind":"Ro`...)
		}
		if _, err := w.Write(frames); err != nil || out.Flush() != nil {
			return
		}
		if cut.times != began.times {
			if cut.orderly {
				return
			}
			panic(http.ErrAbortHandler) // the connection breaks in the middle of a chunk
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// frame returns a change as a watch sends it: the object with its kind.
func frame(c change) []byte {
	raw := string(c.json)
	if c.resource == secrets && c.kind != "BOOKMARK" {
		raw = string(partial(c.json))
	}
	if kind := kinds[c.resource]; !strings.HasPrefix(raw, `{"kind"`) && strings.HasPrefix(raw, "{") {
		raw = `{"kind":"` + kind + `","apiVersion":"` + apiVersion(c.resource) + `",` + raw[1:]
	}
	return []byte(`{"type":"` + c.kind + `","object":` + raw + "}\n")
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message})
}
