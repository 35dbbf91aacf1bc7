package identity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// usedEvery is the shortest interval at which the use of a certificate is recorded.
const usedEvery = 10 * time.Second

// usedFile returns the path of the file that records when certificates of a cluster were last
// presented, by serial. Every receiving process writes it, so that no rotation is finished while
// an apiserver still uses an old certificate. If it cannot be read or written, a rotation needs
// force.
func (r *Registry) usedFile(name string) string { return filepath.Join(r.dir, name+".used") }

// Used returns when the certificates of a cluster were last accepted, by serial, to within
// some seconds.
func (r *Registry) Used(name string) map[string]time.Time {
	out := map[string]time.Time{}
	if !ValidName(name) {
		return out
	}
	data, err := os.ReadFile(r.usedFile(name))
	if err != nil || json.Unmarshal(data, &out) != nil {
		return map[string]time.Time{}
	}
	return out
}

// note records that a certificate was accepted. It may fail: nothing depends on it.
func (r *Registry) note(name, serial string) {
	now := r.now().UTC()
	r.mu.Lock()
	if last, ok := r.noted[name+"/"+serial]; ok && now.Sub(last) < usedEvery && !now.Before(last) {
		r.mu.Unlock()
		return
	}
	r.noted[name+"/"+serial] = now
	r.mu.Unlock()

	known := r.Used(name)
	c, err := r.lookup(name)
	if err != nil {
		return
	}
	kept := map[string]time.Time{}
	for _, cert := range c.Certificates { // the registry no longer has the others
		if at, ok := known[cert.Serial]; ok {
			kept[cert.Serial] = at
		}
	}
	kept[serial] = now
	if data, err := json.Marshal(kept); err == nil {
		_ = writeFile(r.usedFile(name), append(data, '\n'), 0o600)
	}
}
