package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// RawObject is one object of a state file.
type RawObject struct {
	APIVersion, Kind     string
	Resource             string // group resource when the replica keeps the kind, else ""
	Namespace, Name      string
	UID, ResourceVersion string
	Created              time.Time // whole seconds; zero when absent
	// Object is the object as JSON, reduced if its kind is, nil if its kind is not kept: nothing is held that is not needed.
	Object        []byte
	Listed        bool  // came as an item of a list, not alone
	ListContinues bool  // the list says that it is only a part
	InputOffset   int64 // bytes before the end of the object in the input
}

// ErrNotObjects is wrapped by ReadObjects for input that is JSON but holds no Kubernetes objects.
var ErrNotObjects = errors.New("not a Kubernetes object or List as kubectl get -o json prints it")

// ReadObjects reads what `kubectl get … -o json` prints: a List, several Lists or single objects, concatenated. It streams, with one object
// in memory at a time, and visits every object, those of kinds that are not kept without their content. Errors name the byte offset. An
// error of visit ends the reading and is returned unchanged.
func ReadObjects(r io.Reader, visit func(obj RawObject) error) error {
	dec := json.NewDecoder(r)
	for n := 0; ; n++ {
		tok, err := dec.Token()
		if err == io.EOF {
			if n == 0 {
				return fmt.Errorf("read objects: empty input: %w", ErrNotObjects)
			}
			return nil
		}
		if err != nil {
			return readError(dec, err)
		}
		if tok != json.Delim('{') {
			return readError(dec, ErrNotObjects)
		}
		if err := readTop(dec, visit); err != nil {
			return err
		}
	}
}

// readError gives an error its place.
func readError(dec *json.Decoder, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = fmt.Errorf("not JSON as kubectl get -o json prints it: %w", err)
	}
	return fmt.Errorf("read objects: at byte %d: %w", dec.InputOffset(), err)
}

// readTop reads the rest of one top-level object, a list or not.
func readTop(dec *json.Decoder, visit func(RawObject) error) error {
	members := map[string]json.RawMessage{}
	list := false
	// Some writers put items before the list's own metadata, so whether the list continues is known for later items only; kubectl's output
	// has no such list, as it follows the pages itself.
	var listKind, listVersion string
	continues := false
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return readError(dec, err)
		}
		name, ok := tok.(string)
		if !ok {
			return readError(dec, ErrNotObjects)
		}
		if name != "items" {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return readError(dec, err)
			}
			members[name] = raw
			switch name {
			case "kind":
				_ = json.Unmarshal(raw, &listKind)
			case "apiVersion":
				_ = json.Unmarshal(raw, &listVersion)
			case "metadata":
				var m struct {
					Continue string `json:"continue"`
				}
				_ = json.Unmarshal(raw, &m)
				continues = m.Continue != ""
			}
			continue
		}
		list = true
		tok, err = dec.Token()
		if err != nil {
			return readError(dec, err)
		}
		if tok == nil {
			continue // "items": null is an empty list
		}
		if tok != json.Delim('[') {
			return readError(dec, ErrNotObjects)
		}
		for dec.More() {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return readError(dec, err)
			}
			o, err := rawObject(raw, strings.TrimSuffix(listKind, "List"), listVersion)
			if err != nil {
				return readError(dec, err)
			}
			o.Listed, o.ListContinues, o.InputOffset = true, continues, dec.InputOffset()
			if err := visit(o); err != nil {
				return err
			}
		}
		if _, err := dec.Token(); err != nil {
			return readError(dec, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return readError(dec, err)
	}
	if list {
		return nil
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return readError(dec, err)
	}
	o, err := rawObject(raw, "", "")
	if err != nil {
		return readError(dec, err)
	}
	o.InputOffset = dec.InputOffset()
	return visit(o)
}

// rawObject reads an object's head. Items of typed lists have no kind of their own.
func rawObject(raw []byte, kind, version string) (RawObject, error) {
	h, err := kept.ReadHead(raw)
	if err != nil {
		return RawObject{}, err
	}
	if h.Kind == "" {
		h.Kind, h.APIVersion = kind, version
	}
	if h.Kind == "" || h.Metadata.Name == "" {
		return RawObject{}, ErrNotObjects
	}
	o := RawObject{
		APIVersion: h.APIVersion, Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name,
		UID: h.Metadata.UID, ResourceVersion: h.Metadata.ResourceVersion, Created: h.Metadata.Created(),
	}
	if res := kept.ResourceOfKind(h.Group(), h.Kind); res != kept.ResNone {
		o.Resource = res.String()
		object, err := kept.Reduce(res, bytes.TrimSpace(raw), false)
		if err != nil {
			return RawObject{}, err
		}
		o.Object = object
	}
	return o, nil
}

// Snapshot is a listing of objects, complete for Kinds.
type Snapshot struct {
	// Began and Ended bound the time in which the listing was taken. If both are zero (a state file does not say), the listing counts as
	// taken in the second of the newest creation in it.
	Began, Ended time.Time
	// Since, if not zero, says that every policy write since then has been or will be applied from the audit stream, so that what the
	// listing shows reaches back to it.
	Since time.Time
	// Kinds are the resources (see Resources) whose objects are listed completely.
	Kinds []string
	// Objects hold one version each; their own times are ignored.
	Objects []Observation
}

// ReadSnapshot reads a state file. Kinds are those that were listed in every namespace: a single object, a part of a list, or a namespaced
// kind whose items all lie in one namespace does not make its kind complete. skipped counts the objects of kinds the replica does not keep,
// by kind. Began and Ended are left zero; callers that know set them.
func ReadSnapshot(r io.Reader) (snap Snapshot, skipped map[string]int, err error) {
	skipped = map[string]int{}
	type seen struct {
		listed, partial bool
		namespace       string
		several         bool
		count           int
	}
	var kinds [kept.ResCount]seen
	err = ReadObjects(r, func(o RawObject) error {
		res := kept.ResourceOf(o.Resource)
		if res == kept.ResNone {
			skipped[o.Kind]++
			return nil
		}
		k := &kinds[res]
		if o.Listed {
			k.listed = true
		}
		k.partial = k.partial || o.ListContinues
		if k.count > 0 && k.namespace != o.Namespace {
			k.several = true
		}
		k.namespace = o.Namespace
		k.count++
		snap.Objects = append(snap.Objects, o.Observation())
		return nil
	})
	if err != nil {
		return Snapshot{}, skipped, err
	}
	for res, k := range kinds {
		if k.listed && !k.partial && (k.several || !kept.Resource(res).Namespaced()) {
			snap.Kinds = append(snap.Kinds, kept.Resource(res).String())
		}
	}
	sort.Strings(snap.Kinds)
	return snap, skipped, nil
}

// Observation returns the object as a snapshot's observation. Its kind must be kept.
func (o RawObject) Observation() Observation {
	return Observation{
		Source: SourceSnapshot, Resource: o.Resource, Namespace: o.Namespace, Name: o.Name,
		UID: o.UID, ResourceVersion: o.ResourceVersion, Object: o.Object,
	}
}

// bounds returns the snapshot's times, estimated if it has none.
func (s *Snapshot) bounds() (began, ended int64) {
	if !s.Began.IsZero() || !s.Ended.IsZero() {
		b, e := instant.Of(s.Began), instant.Of(s.Ended)
		if e == instant.None {
			e = b
		}
		if b == instant.None || b > e {
			b = e
		}
		return b, e
	}
	newest := instant.None
	for i := range s.Objects {
		h, err := kept.ReadHead(s.Objects[i].Object)
		if err != nil {
			continue
		}
		newest = max(newest, instant.Of(h.Metadata.Created()))
	}
	if newest == instant.None {
		return instant.None, instant.None
	}
	// Creation times are cut to seconds: the object may have been made at the end of it, and others, which the listing does not show, after
	// it in the same second.
	return newest, newest + int64(time.Second)
}

// Observations returns the snapshot as observations to apply, store or send: its objects,
// then for each kind one that says the listing is complete. Their order does not matter.
func (s *Snapshot) Observations() []Observation {
	began, ended := s.bounds()
	out := make([]Observation, 0, len(s.Objects)+len(s.Kinds))
	for _, o := range s.Objects {
		o.Source = SourceSnapshot
		o.NotBefore, o.NotAfter = instant.Time(began), instant.Time(ended)
		out = append(out, o)
	}
	for _, kind := range s.Kinds {
		out = append(out, Observation{
			Source: SourceSnapshot, Resource: kind, AllOf: true, Complete: true,
			NotBefore: instant.Time(began), NotAfter: instant.Time(ended), Since: s.Since,
		})
	}
	return out
}
