// Package changeset writes a change that suggestions make as files to read, to keep and to apply.
//
//	SuggestAnswer ──▶ Files: apply/ patches/ remove/ rollback/ owners/, scripts of kubectl, kustomizations, README.md
//
// What exists is edited by JSON patches that test what was there, so that a patch of an object that has changed since fails, with kubectl
// and in a kustomization alike; a resourceVersion would not do in a repository. What something else writes is for its owner, and in no
// script.
//
// The package is pure.
package changeset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/rbacindex"
)

// ErrNothing is the error of an answer that changes nothing.
var ErrNothing = errors.New("there is nothing to change: no directory is written")

// File is one of a directory.
type File struct {
	Name string // with / between folders
	Text []byte
}

// step is what becomes of one object.
type step struct {
	key           rbacindex.Key
	before, after any // as objects; nil: it is made, or deleted
	owner         string
	went          []rbacv1.Subject // that a binding loses
}

// change is an answer as steps, in the order in which they are taken.
type change struct {
	answer   *query.SuggestAnswer
	notes    map[string][][]string
	made     [][]step // roles with their bindings
	edited   []step
	removed  []step
	owned    map[string][]step
	unworded []string // objects whose names no script should hold
	files    []File
}

// Files returns the directory of a change, in the order of their names.
func Files(answer *query.SuggestAnswer) ([]File, error) {
	c := &change{answer: answer, notes: leastpriv.Notes(answer.Plan.Why), owned: map[string][]step{}}
	if err := c.read(); err != nil {
		return nil, err
	}
	if len(c.made)+len(c.edited)+len(c.removed)+len(c.owned)+len(c.unworded) == 0 {
		return nil, ErrNothing
	}
	for _, write := range []func() error{c.newObjects, c.edits, c.removals, c.owners, c.scripts, c.readme} {
		if err := write(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return c.files, nil
}

// read takes the plan apart.
func (c *change) read() error {
	p := c.answer.Plan
	before, owner := map[rbacindex.Key]any{}, map[string]string{}
	for _, o := range p.Rollback {
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			return fmt.Errorf("read the way back: %w", err)
		}
		before[k] = o
	}
	for _, o := range p.Owned {
		owner[o.Object] = o.Owner
	}
	roles := map[rbacindex.Key]int{} // the places of new roles in made
	for _, o := range p.Apply {
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			return fmt.Errorf("read what to apply: %w", err)
		}
		s := step{key: k, before: before[k], after: o, owner: owner[k.String()]}
		if s.before != nil {
			c.take(&s, &c.edited)
			continue
		}
		role := k
		if _, ref, ok := rbacindex.BindingOf(o); ok {
			role = rbacindex.RoleKey(&ref, k.Namespace)
		}
		at, there := roles[role]
		if !there {
			at, roles[role] = len(c.made), len(c.made)
			c.made = append(c.made, nil)
		}
		c.made[at] = append(c.made[at], s)
	}
	for i := range p.Remove {
		r := &p.Remove[i]
		k := rbacindex.Key{Kind: kindOf(r.Kind), Namespace: r.Namespace, Name: r.Name}
		s := step{key: k, before: before[k], after: r.Object, owner: owner[k.String()], went: r.Subjects}
		if s.before == nil {
			return fmt.Errorf("%s is to be removed, and the way back does not hold it", k)
		}
		c.take(&s, &c.removed)
	}
	return nil
}

// take puts the step of an object that exists where it belongs.
func (c *change) take(s *step, unowned *[]step) {
	switch {
	case s.owner != "":
		c.owned[s.owner] = append(c.owned[s.owner], *s)
	case !safe.Printable(s.key.Name) || !safe.Printable(s.key.Namespace):
		c.unworded = append(c.unworded, s.key.String())
	default:
		*unowned = append(*unowned, *s)
	}
}

func kindOf(name string) rbacindex.Kind {
	for _, k := range []rbacindex.Kind{rbacindex.KindRole, rbacindex.KindClusterRole, rbacindex.KindRoleBinding} {
		if k.String() == name {
			return k
		}
	}
	return rbacindex.KindClusterRoleBinding
}

// add writes a file.
func (c *change) add(name string, text *bytes.Buffer) {
	c.files = append(c.files, File{Name: name, Text: text.Bytes()})
}

// newObjects writes what is made, a file for each role with its bindings.
func (c *change) newObjects() error {
	var names []string
	for _, of := range c.made {
		slices.SortStableFunc(of, func(a, b step) int { return cmp.Compare(rank(a.key), rank(b.key)) })
		var b bytes.Buffer
		manifest.Comment(&b, "%s is new. Nothing that exists is changed by this file.", of[0].key)
		objects := make([]leastpriv.Object, 0, len(of))
		for i := range of {
			objects = append(objects, of[i].after)
		}
		if err := leastpriv.WriteNoted(&b, objects, c.notes); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		name := fileOf(of[0].key)
		names = append(names, "apply/"+name)
		c.add("apply/"+name, &b)
	}
	if len(names) == 0 {
		return nil
	}
	var b bytes.Buffer
	manifest.Comment(&b, "What is new. Edits are in patches/ and removals in remove/, as components: README.md.")
	c.add("kustomization.yaml", &b)
	return c.yaml(&c.files[len(c.files)-1], object{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": names})
}

// rank puts roles before bindings.
func rank(k rbacindex.Key) int {
	if k.Kind == rbacindex.KindRole || k.Kind == rbacindex.KindClusterRole {
		return 0
	}
	return 1
}

type object = map[string]any

// yaml appends an object to a file.
func (c *change) yaml(f *File, o object) error {
	b := bytes.NewBuffer(f.Text)
	if err := manifest.Objects(b, []object{o}); err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	f.Text = b.Bytes()
	return nil
}

// edits writes patches of roles that stay, with the way back.
func (c *change) edits() error {
	for i := range c.edited {
		if err := c.edit("patches/", &c.edited[i]); err != nil {
			return err
		}
	}
	return c.component("patches/", c.edited,
		"The edits of objects that a kustomization has already: name this folder among its components.")
}

// removals writes what tests, and takes away, what the new objects replace, with the way back.
func (c *change) removals() error {
	for i := range c.removed {
		s := &c.removed[i]
		if s.after != nil {
			if err := c.edit("remove/", s); err != nil {
				return err
			}
			continue
		}
		var b, back bytes.Buffer
		manifest.Comment(&b, "Delete %s%s, if this is still what it holds.", s.key, losing(s))
		if err := patch(&b, s.before, nil, nil); err != nil {
			return err
		}
		c.add("remove/"+fileOf(s.key), &b)
		manifest.Comment(&back, "%s, as it was.", s.key)
		if err := manifest.Objects(&back, []any{s.before}); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		c.add("rollback/"+fileOf(s.key), &back)
	}
	return c.component("remove/", c.removed,
		"The removals from a kustomization that has these objects: name this folder among its components, "+
			"once what replaces them is in the cluster.")
}

// losing names the subjects that lose a binding.
func losing(s *step) string {
	if len(s.went) == 0 {
		return ""
	}
	return " (" + subjects(s.went) + ")"
}

// subjects names a few subjects.
func subjects(list []rbacv1.Subject) string {
	var names []string
	for i, s := range list {
		if i == 3 {
			names = append(names, phrase.Number(len(list)-i, "other"))
			break
		}
		name := s.Name
		if s.Namespace != "" {
			name = s.Namespace + ":" + s.Name
		}
		names = append(names, s.Kind+" "+name)
	}
	return strings.Join(names, ", ")
}

// edit writes the patch of an object, and the one that undoes it.
func (c *change) edit(folder string, s *step) error {
	var b, back bytes.Buffer
	if len(s.went) > 0 {
		manifest.Comment(&b, "Take %s out of %s, if this is still what it holds.", subjects(s.went), s.key)
	} else {
		manifest.Comment(&b, "Narrow %s, if this is still what it holds.", s.key)
	}
	manifest.Comment(&back, "Bring back what %s held, if nobody has changed it since.", s.key)
	if err := errors.Join(patch(&b, s.before, s.after, c.notes[s.key.String()]), patch(&back, s.after, s.before, nil)); err != nil {
		return err
	}
	c.add(folder+fileOf(s.key), &b)
	c.add("rollback/"+fileOf(s.key), &back)
	return nil
}

// patch writes a JSON patch as YAML that tests what an object holds, and puts something else there, unless that is nil.
func patch(b *bytes.Buffer, before, after any, notes [][]string) error {
	if list, ref, ok := rbacindex.BindingOf(before); ok {
		if after == nil {
			if err := op(b, "test", "/roleRef", []rbacv1.RoleRef{ref}, nil, true); err != nil {
				return err
			}
		}
		if err := op(b, "test", "/subjects", whole(list), nil, false); err != nil || after == nil {
			return err
		}
		list, _, _ = rbacindex.BindingOf(after)
		return op(b, "replace", "/subjects", whole(list), nil, false)
	}
	rules, _ := rbacindex.RulesOf(before)
	if err := op(b, "test", "/rules", rules, nil, false); err != nil || after == nil {
		return err
	}
	rules, _ = rbacindex.RulesOf(after)
	return op(b, "replace", "/rules", rules, notes, false)
}

// op writes an operation of a JSON patch; its value is a list, or the one of it.
func op[T any](b *bytes.Buffer, name, path string, value []T, notes [][]string, one bool) error {
	fmt.Fprintf(b, "- op: %s\n  path: %s\n", name, path)
	switch {
	case len(value) == 0:
		b.WriteString("  value: null\n")
		return nil
	case !one:
		b.WriteString("  value:\n")
		return manifest.Items(b, "  ", value, notes) //nolint:wrapcheck // it says what failed
	}
	var text bytes.Buffer
	if err := manifest.Objects(&text, value); err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	b.WriteString("  value:\n")
	for line := range strings.Lines(text.String()) {
		b.WriteString("    " + line)
	}
	return nil
}

// whole returns subjects as an apiserver keeps them, with the group that is the default.
func whole(list []rbacv1.Subject) []rbacv1.Subject {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Kind != rbacv1.ServiceAccountKind {
			out[i].APIGroup = cmp.Or(out[i].APIGroup, rbacv1.GroupName)
		}
	}
	return out
}
