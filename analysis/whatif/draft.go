package whatif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
)

// Object is one object of a draft.
type Object struct {
	Key    rbacindex.Key
	Object any // as rbacindex.New takes it; nil: it is deleted
	Labels map[string]string
	File   string // it was read from, "" for a deletion
	Line   int    // it begins at, from 1
}

// MostObjects bounds a draft.
const MostObjects = 10_000

var kinds = []rbacindex.Kind{rbacindex.KindRole, rbacindex.KindClusterRole, rbacindex.KindRoleBinding, rbacindex.KindClusterRoleBinding}

// kindNames are the kinds a draft may have.
func kindNames() (out []string) {
	for _, k := range kinds {
		out = append(out, k.String())
	}
	return out
}

// errEmptyDraft is the error of a draft that holds nothing.
var errEmptyDraft = errors.New("it holds no object: want Roles, ClusterRoles, RoleBindings or ClusterRoleBindings as YAML or JSON")

// Read reads the files of a draft, by their names, and the names of objects to delete. Every object is in it once.
func Read(files map[string]string, deletes []string) (out []Object, err error) {
	first := map[rbacindex.Key]Object{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		objects, err := Parse(file, []byte(files[file]))
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if had, twice := first[o.Key]; twice {
				return nil, fmt.Errorf("%s:%d: %s is in the draft twice, first at %s:%d", o.File, o.Line, o.Key, had.File, had.Line)
			}
			first[o.Key] = o
		}
		if out = append(out, objects...); len(out) > MostObjects {
			return nil, fmt.Errorf("%s: a draft has at most %d objects", file, MostObjects)
		}
	}
	for _, text := range deletes {
		o, err := ParseDelete(text)
		if err != nil {
			return nil, err
		}
		if had, drafted := first[o.Key]; drafted && had.Object != nil {
			return nil, fmt.Errorf("%s is to be deleted, and is in the draft at %s:%d", o.Key, had.File, had.Line)
		} else if !drafted {
			first[o.Key], out = o, append(out, o)
		}
	}
	return out, nil
}

// Parse reads a draft: documents of YAML or JSON, each an object or a list of objects. Errors begin with the file and the line.
func Parse(file string, text []byte) ([]Object, error) {
	var out []Object
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			if len(out) == 0 {
				return nil, fmt.Errorf("%s: %w", file, errEmptyDraft)
			}
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if out, err = appendObjects(out, file, &doc); err != nil {
			return nil, err
		}
	}
}

// head is what is read of every object first.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      json.RawMessage   `json:"items"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
}

// appendObjects appends the objects of a document, or of an item of a list.
func appendObjects(out []Object, file string, node *yaml.Node) ([]Object, error) {
	if node.Kind == yaml.DocumentNode {
		node = node.Content[0]
	}
	if node.Tag == "!!null" {
		return out, nil
	}
	fail := func(format string, args ...any) ([]Object, error) {
		return nil, fmt.Errorf("%s:%d: %w", file, node.Line, fmt.Errorf(format, args...))
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return fail("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fail("it is not JSON as an apiserver takes it: %w", err)
	}
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return fail("it is not a Kubernetes object: %w", err)
	}
	if strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value != "items" || node.Content[i+1].Kind != yaml.SequenceNode {
				continue
			}
			for _, item := range node.Content[i+1].Content {
				if item.Kind == yaml.AliasNode {
					item = item.Alias
				}
				if out, err = appendObjects(out, file, item); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	object, err := objectOf(&h, raw)
	if err != nil {
		return fail("%w", err)
	}
	object.File, object.Line = file, node.Line
	if i := slices.IndexFunc(out, func(o Object) bool { return o.Key == object.Key }); i >= 0 {
		return fail("%s is in the draft twice, first at %s:%d", object.Key, out[i].File, out[i].Line)
	}
	if len(out) == MostObjects {
		return fail("a draft has at most %d objects", MostObjects)
	}
	return append(out, object), nil
}

// objectOf reads an object of one of the kinds, strictly.
func objectOf(h *head, raw []byte) (out Object, err error) {
	var into any
	switch h.Kind {
	case "Role":
		into = &rbacv1.Role{}
	case "ClusterRole":
		into = &rbacv1.ClusterRole{}
	case "RoleBinding":
		into = &rbacv1.RoleBinding{}
	case "ClusterRoleBinding":
		into = &rbacv1.ClusterRoleBinding{}
	case "":
		return out, errors.New("kind is missing")
	default:
		return out, unknownKind(h.Kind)
	}
	if group, version, _ := strings.Cut(h.APIVersion, "/"); group != rbacv1.GroupName || version != "v1" {
		return out, fmt.Errorf("%s has apiVersion %q: want %s/v1", h.Kind, h.APIVersion, rbacv1.GroupName)
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return out, fmt.Errorf("%s %s: %s", h.Kind, h.Metadata.Name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if h.Metadata.Name == "" {
		return out, fmt.Errorf("%s: metadata.name is missing", h.Kind)
	}
	namespaced := h.Kind == "Role" || h.Kind == "RoleBinding"
	if namespaced && h.Metadata.Namespace == "" {
		return out, fmt.Errorf("%s %s: metadata.namespace is missing", h.Kind, h.Metadata.Name)
	}
	out.Labels = h.Metadata.Labels
	meta := metav1.ObjectMeta{Name: h.Metadata.Name}
	if namespaced {
		meta.Namespace = h.Metadata.Namespace
	}
	switch o := into.(type) {
	case *rbacv1.Role:
		out.Object = &rbacv1.Role{ObjectMeta: meta, Rules: o.Rules}
	case *rbacv1.ClusterRole:
		out.Object = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: o.Rules, AggregationRule: o.AggregationRule}
	case *rbacv1.RoleBinding:
		out.Object = &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: o.Subjects, RoleRef: o.RoleRef}
		err = binding(o.Subjects, &out.Object.(*rbacv1.RoleBinding).RoleRef, true)
	case *rbacv1.ClusterRoleBinding:
		out.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: o.Subjects, RoleRef: o.RoleRef}
		err = binding(o.Subjects, &out.Object.(*rbacv1.ClusterRoleBinding).RoleRef, false)
	}
	if err != nil {
		return out, fmt.Errorf("%s %s: %w", h.Kind, h.Metadata.Name, err)
	}
	out.Key, err = rbacindex.KeyOf(out.Object)
	return out, err
}

// binding fills in what an apiserver does, and checks what it checks.
func binding(subjects []rbacv1.Subject, ref *rbacv1.RoleRef, namespaced bool) error {
	ref.APIGroup = cmp.Or(ref.APIGroup, rbacv1.GroupName)
	switch {
	case ref.Name == "":
		return errors.New("roleRef.name is missing")
	case ref.Kind != "ClusterRole" && (ref.Kind != "Role" || !namespaced):
		want := "ClusterRole"
		if namespaced {
			want = "Role or ClusterRole"
		}
		return fmt.Errorf("roleRef.kind is %q: want %s", ref.Kind, want)
	case ref.APIGroup != rbacv1.GroupName:
		return fmt.Errorf("roleRef.apiGroup is %q: want %s", ref.APIGroup, rbacv1.GroupName)
	}
	for i := range subjects {
		s := &subjects[i]
		switch s.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			s.APIGroup = cmp.Or(s.APIGroup, rbacv1.GroupName)
		case rbacv1.ServiceAccountKind:
			if s.Namespace == "" && !namespaced {
				return fmt.Errorf("subjects[%d].namespace is missing", i)
			}
		default:
			return fmt.Errorf("subjects[%d].kind is %q: want User, Group or ServiceAccount", i, s.Kind)
		}
		if s.Name == "" {
			return fmt.Errorf("subjects[%d].name is missing", i)
		}
	}
	return nil
}

func unknownKind(kind string) error {
	return fmt.Errorf("kind %q is none of %s%s", kind, strings.Join(kindNames(), ", "),
		phrase.DidYouMean("; ", near.Words(kind, kindNames(), 1)))
}

// ParseDelete reads an object to delete: KIND/NAME, of a Role or RoleBinding KIND/NAMESPACE/NAME.
func ParseDelete(text string) (Object, error) {
	kind, rest, ok := strings.Cut(text, "/")
	if !ok || rest == "" {
		return Object{}, fmt.Errorf("%q is not an object: want KIND/NAME, or KIND/NAMESPACE/NAME of a Role or RoleBinding", text)
	}
	for _, k := range kinds {
		if name := strings.ToLower(k.String()); strings.ToLower(kind) != name && strings.ToLower(kind) != name+"s" {
			continue
		}
		key := rbacindex.Key{Kind: k, Name: rest}
		if k == rbacindex.KindRole || k == rbacindex.KindRoleBinding {
			if key.Namespace, key.Name, ok = strings.Cut(rest, "/"); !ok || key.Namespace == "" || key.Name == "" {
				return Object{}, fmt.Errorf("%q names no namespace: want %s/NAMESPACE/NAME", text, k)
			}
		}
		return Object{Key: key}, nil
	}
	return Object{}, unknownKind(kind)
}
