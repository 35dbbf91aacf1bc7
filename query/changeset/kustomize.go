package changeset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/rbacindex"
)

// component writes the kustomization of a folder of patches. A patch of an object that is not there does nothing in a kustomization,
// without a word; a merge that changes nothing fails then, so there is one beside each.
func (c *change) component(folder string, steps []step, told string) error {
	if len(steps) == 0 {
		return nil
	}
	var b bytes.Buffer
	manifest.Comment(&b, "%s", told)
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n")
	for i := range steps {
		s := &steps[i]
		version := rbacv1.SchemeGroupVersion
		meta, target := object{"name": s.key.Name}, object{"group": version.Group, "version": version.Version, "kind": s.key.Kind.String(),
			"name": pattern(s.key.Name)}
		if s.key.Namespace != "" {
			meta["namespace"], target["namespace"] = s.key.Namespace, pattern(s.key.Namespace)
		}
		merge := object{"apiVersion": version.String(), "kind": s.key.Kind.String(), "metadata": meta}
		if s.after == nil {
			merge["$patch"] = "delete"
		}
		var text bytes.Buffer
		if err := manifest.Objects(&text, []object{merge}); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		if err := manifest.Items(&b, "", []object{{"path": fileOf(s.key), "target": target}}, nil); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		b.WriteString("- patch: |-\n")
		for line := range strings.Lines(text.String()) {
			b.WriteString("    " + line)
		}
	}
	c.add(folder+"kustomization.yaml", &b)
	return nil
}

// pattern returns the expression that a name alone matches.
func pattern(name string) string { return strings.ReplaceAll(regexp.QuoteMeta(name), `\.`, "[.]") }

// fileOf names the file of an object.
func fileOf(k rbacindex.Key) string {
	parts := []string{strings.ToLower(k.Kind.String())}
	if k.Namespace != "" {
		parts = append(parts, k.Namespace)
	}
	return fileName(strings.Join(append(parts, k.Name), ".")) + ".yaml"
}

// mostName bounds the letters of a file's name.
const mostName = 120

// fileName returns a text as the name of a file, with a hash if it cannot be one as it is.
func fileName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, text)
	if name == text && len(name) <= mostName && strings.ToLower(name) == name {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return strings.Trim(strings.ToLower(name[:min(len(name), mostName)]), "-.") + "-" + hex.EncodeToString(sum[:4])
}
