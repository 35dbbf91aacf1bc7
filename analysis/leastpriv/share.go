package leastpriv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// mostShares is into how many roles one is split at most.
const mostShares = 32

// objectWeight is how much unused weight an object more has to take away: a role is split among its holders, or copied, only where that
// removes more. Where all suggestions together would leave more objects than there are, it is doubled until they do not, so often at most.
const (
	objectWeight = 100
	mostDoubled  = 10
)

// share are holders of a role that get the same part of it.
type share struct {
	holders  []*holder
	part     *part
	complete bool // it is all of the role
}

// bindings returns the bindings of a share, each once.
func (s *share) bindings() []rbacindex.Key {
	var out []rbacindex.Key
	for _, h := range s.holders {
		out = append(out, h.bindings...)
	}
	slices.SortFunc(out, rbacindex.Key.Compare)
	return slices.Compact(out)
}

// join puts holders that used nearly the same of a role together, as long as what that leaves them weighs less than the
// objects it saves, which weigh so much each.
func (e *roleEdit) join(object int) {
	single := joinEqual(e.shares, func(s *share) string { return s.part.text() }, func(into, s *share) { *into = into.with(s) })
	e.shares = nil
	for _, s := range single {
		if len(e.shares) < mostShares {
			e.shares = append(e.shares, s)
			continue
		}
		best, saved := 0, 0
		for i := range e.shares {
			if n := e.shares[i].saved(&s, object); i == 0 || n > saved {
				best, saved = i, n
			}
		}
		e.shares[best] = e.shares[best].with(&s)
	}
	for {
		best, saved := [2]int{}, 0
		for i := range e.shares {
			for j := i + 1; j < len(e.shares); j++ {
				if n := e.shares[i].saved(&e.shares[j], object); n > saved {
					best, saved = [2]int{i, j}, n
				}
			}
		}
		if saved == 0 {
			break
		}
		i, j := best[0], best[1]
		e.shares[i] = e.shares[i].with(&e.shares[j])
		e.shares = slices.Delete(e.shares, j, j+1)
	}
	for i := range e.shares {
		s := &e.shares[i]
		s.complete = s.part.complete() || !e.inPlace && s.gain(object) < object
	}
	// The share that keeps the role is one that has all of it, or that with most bindings: they stay as they are.
	slices.SortStableFunc(e.shares, func(a, b share) int {
		if a.complete != b.complete {
			return map[bool]int{true: -1, false: 1}[a.complete]
		}
		return cmp.Compare(len(b.bindings()), len(a.bindings()))
	})
}

// joinEqual joins what has equal texts, in order.
func joinEqual[T any](list []T, text func(*T) string, join func(into, x *T)) (out []T) {
	at := map[string]int{}
	for i := range list {
		key := text(&list[i])
		n, found := at[key]
		if !found {
			at[key] = len(out)
			out = append(out, list[i])
			continue
		}
		join(&out[n], &list[i])
	}
	return out
}

// text is equal for parts of a role that keep the same.
func (p *part) text() string {
	if p.all {
		return "all"
	}
	var b strings.Builder
	for i := range p.rules {
		fmt.Fprintf(&b, "%d", i)
		for _, kept := range [][]pair{slices.Collect(maps.Keys(p.used[i])), slices.Collect(maps.Keys(p.added[i]))} {
			slices.SortFunc(kept, comparePairs)
			fmt.Fprintf(&b, "%q", kept)
		}
	}
	return b.String()
}

// with returns the share of the holders of both.
func (s *share) with(t *share) share {
	return share{holders: slices.Concat(s.holders, t.holders), part: s.part.with(t.part)}
}

// saved returns how much is saved by giving both what one of them used: the weight of objects, without that of what either then holds more.
func (s *share) saved(t *share, object int) int {
	own, others := s.bindings(), t.bindings()
	shared := len(own) + len(others) - len(slices.Compact(slices.SortedFunc(slices.Values(slices.Concat(own, others)),
		rbacindex.Key.Compare)))
	more := 0
	for _, of := range []struct {
		part, by *part
		bindings []rbacindex.Key
	}{{s.part, t.part, own}, {t.part, s.part, others}} {
		namespaced, everywhere := of.part.more(of.by)
		if of.by.all && !of.part.all {
			namespaced, everywhere = of.part.lack()
		}
		more += inAll(of.bindings, namespaced, everywhere)
	}
	return object*(1+shared) - more
}

// inAll returns what bindings give together, if each gives so much in its namespace or everywhere.
func inAll(bindings []rbacindex.Key, namespaced, everywhere int) (n int) {
	for _, k := range bindings {
		if k.Namespace == "" {
			n += everywhere
		} else {
			n += namespaced
		}
	}
	return n
}

// gain returns how much weight a share leaves to its holders' bindings less than the role: enough where it is dangerous.
func (s *share) gain(object int) int {
	if s.part.leavesDanger() {
		return object
	}
	namespaced, everywhere := s.part.lack()
	return inAll(s.bindings(), namespaced, everywhere)
}

// leavesDanger reports whether a part leaves out anything that gives control of others, or their secrets.
func (p *part) leavesDanger() (danger bool) {
	known := p.left(func(a *atom) bool {
		danger = weight(a) >= dangerous
		return !danger
	})
	return danger || !known
}

// lack returns how much weight all of a role is beyond a part of it, which is not changed any more.
func (p *part) lack() (namespaced, everywhere int) {
	if p.lacks == nil {
		p.lacks = &[2]int{}
		known := p.left(func(a *atom) bool {
			p.lacks[0], p.lacks[1] = p.lacks[0]+granted(a, "a"), p.lacks[1]+granted(a, "")
			return true
		})
		if !known {
			p.lacks = &[2]int{1 << 30, 1 << 30}
		}
	}
	return p.lacks[0], p.lacks[1]
}
