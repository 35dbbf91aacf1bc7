package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// moment is a time at which no request was under way, and what the registry held.
type moment struct {
	at    time.Time
	pairs map[string]*mvccpb.KeyValue
}

// news is what was learnt at one time.
type news struct {
	step    int
	moment  int // the first moment by which it was there to be told
	late    int
	partial bool // an event without bodies
	obs     []observe.Observation
}

// history is a sequence that was played.
type history struct {
	moments []moment
	news    []news
}

// player plays one sequence.
type player struct {
	*server
	sequence sequence
	begun    time.Time // of the log
	history  history
	running  sync.WaitGroup
	listings []openListing
	redactor *redact.Redactor
}

// openListing is a listing that is being taken.
type openListing struct {
	step  int
	began time.Time
	left  int
	taken map[string][]observe.Observation
}

// play plays a sequence on an empty registry.
func (s *server) play(seq sequence) (*history, error) {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // each time at the same of a second
	p := &player{server: s, sequence: seq, begun: time.Now(), redactor: redact.New([]byte("0123456789abcdef0123456789abcdef"))}
	s.etcd.clear()
	s.audit.begin(seq.Level)
	if seq.Born {
		p.history.news = append(p.history.news, news{step: -1, obs: observe.Born()})
	}
	for i := range seq.Steps {
		st := &seq.Steps[i]
		if !st.Overlap || st.Action != request {
			if err := p.rest(); err != nil {
				return nil, err
			}
		}
		time.Sleep(st.Wait)
		if err := p.step(i, st); err != nil {
			return nil, err
		}
	}
	for range 3 { // listings that are being taken end
		if err := p.rest(); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
	}
	return &p.history, nil
}

// step begins a step.
func (p *player) step(i int, st *step) error {
	switch st.Action {
	case logBegin:
		p.begun = time.Now()
		kept := p.history.news[:0]
		for _, n := range p.history.news {
			if n.step < 0 {
				kept = append(kept, n)
			}
		}
		p.history.news, p.history.moments, p.listings = kept, nil, nil
	case listing:
		p.listings = append(p.listings, openListing{i, time.Now(), st.Span, map[string][]observe.Observation{}})
	default:
		r, err := p.request(i, st)
		if err != nil {
			return err
		}
		p.running.Go(func() { p.ask(r) })
	}
	return nil
}

// rest waits until no request is under way and notes what is there then, and what was told.
func (p *player) rest() error {
	p.running.Wait()
	m := moment{time.Now(), p.etcd.all()}
	p.history.moments = append(p.history.moments, m)
	for _, post := range p.audit.take() {
		if err := p.read(post); err != nil {
			return err
		}
	}
	open := p.listings[:0]
	for _, l := range p.listings {
		if err := p.list(&l, &m); err != nil {
			return err
		}
		if l.left--; l.left >= 0 {
			open = append(open, l)
		}
	}
	p.listings = open
	return nil
}

// list takes what of a listing is taken now: one kind of several, or at its end all that are left.
func (p *player) list(l *openListing, m *moment) error {
	for i, resource := range kept.Resources() {
		if _, done := l.taken[resource]; done || l.left > 0 && i%(l.left+1) != 0 {
			continue
		}
		l.taken[resource] = []observe.Observation{}
		for key, kv := range m.pairs {
			if !strings.HasPrefix(key, "/registry/"+resource+"/") {
				continue
			}
			raw, err := objectOf(kv)
			if err != nil {
				return err
			}
			if err := observe.ReadObjects(strings.NewReader(string(raw)), func(o observe.RawObject) error {
				l.taken[resource] = append(l.taken[resource], o.Observation())
				return nil
			}); err != nil {
				return err
			}
		}
	}
	if l.left > 0 {
		return nil
	}
	snap := observe.Snapshot{Began: l.began, Ended: m.at, Kinds: kept.Resources()}
	if p.sequence.Steps[l.step].Since {
		snap.Since = p.begun
	}
	for _, objects := range l.taken {
		snap.Objects = append(snap.Objects, objects...)
	}
	p.history.news = append(p.history.news, news{step: l.step, moment: len(p.history.moments) - 1, obs: snap.Observations()})
	return nil
}

// objectOf returns a stored object with its resourceVersion, as it is answered.
func objectOf(kv *mvccpb.KeyValue) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(kv.Value, &object); err != nil {
		return nil, fmt.Errorf("read %s: %w", kv.Key, err)
	}
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatInt(kv.ModRevision, 10)
	return json.Marshal(object)
}

// request makes the HTTP request of a step.
func (p *player) request(i int, st *step) (*http.Request, error) {
	var now map[string]any
	uid, rv := "none", "1"
	if kv := p.etcd.all()["/registry/"+strings.ReplaceAll(st.Object, "//", "/")]; kv != nil {
		raw, err := objectOf(kv)
		if err == nil {
			err = json.Unmarshal(raw, &now)
		}
		if err != nil {
			return nil, err
		}
		meta := now["metadata"].(map[string]any)
		uid, rv = meta["uid"].(string), meta["resourceVersion"].(string)
	}
	replaced := strings.NewReplacer("{uid}", uid, "{rv}", rv)
	body := replaced.Replace(st.Body)
	if st.Edit {
		var err error
		if body, err = edited(now, st.Object, body); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	r := httptest.NewRequest(st.Method, replaced.Replace(st.Path), strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set(headerUser, st.User)
	r.Header.Set("Audit-ID", strconv.Itoa(i))
	for name, value := range map[string]string{"Content-Type": st.Type, "Accept": st.Accept} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r.WithContext(context.WithValue(r.Context(), paceKey{}, st.Pace)), nil
}

// edited merges a patch into an object, or into a new one where there is none.
func edited(now map[string]any, object, patch string) (string, error) {
	if now == nil {
		parts := strings.Split(object, "/")
		now = map[string]any{"metadata": map[string]any{"name": parts[2], "namespace": parts[1]}}
		for _, k := range kinds {
			if k.resource == parts[0] {
				now["kind"], now["apiVersion"] = k.kind, k.version()
			}
		}
	}
	var change map[string]any
	if err := json.Unmarshal([]byte(patch), &change); err != nil {
		return "", fmt.Errorf("read the edit %s: %w", patch, err)
	}
	merge(now, change)
	b, err := json.Marshal(now)
	return string(b), err
}

// merge merges a JSON merge patch into an object.
func merge(object, patch map[string]any) {
	for name, value := range patch {
		was, isObject := object[name].(map[string]any)
		change, changes := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, name)
		case isObject && changes:
			merge(was, change)
		default:
			object[name] = value
		}
	}
}

// read reads what the webhook posts as the product does: decoded, redacted, stored and read back,
// chosen, and turned into observations, which are stored and read back too.
func (p *player) read(post []byte) error {
	return event.DecodeList(post, func(item event.Item) error {
		if item.Err != nil {
			return item.Err
		}
		e := item.Event
		i, err := strconv.Atoi(e.AuditID)
		if err != nil {
			return fmt.Errorf("audit event %s is of no step: %w", e.AuditID, err)
		}
		st := &p.sequence.Steps[i]
		n := news{step: i, moment: len(p.history.moments) - 1, late: st.Late, partial: e.Level != event.LevelRequestResponse}
		if st.Cut { // as a receiver cuts an event that is too large
			event.StripBodies(e, len(item.Raw), "digest")
			n.partial = true
		}
		keeps := event.KeepsPolicy(e)
		p.redactor.Redact(e)
		if e, err = event.Decode(event.AppendJSON(nil, e)); err != nil {
			return fmt.Errorf("read event %d back: %w", i, err)
		}
		if keeps {
			obs, err := observe.FromEvent(e)
			if err != nil {
				return fmt.Errorf("read event %d: %w", i, err)
			}
			for _, o := range obs {
				if o, err = observe.Decode(o.Append(nil)); err != nil {
					return fmt.Errorf("read an observation of event %d back: %w", i, err)
				}
				n.obs = append(n.obs, o)
			}
		}
		p.history.news = append(p.history.news, n)
		if st.Twice {
			n.late += 2
			p.history.news = append(p.history.news, n)
		}
		return nil
	})
}
