package rbacindex

// Steps bounds the work of questions whose cost depends on how a policy is written, not on how
// large it is. A step is a string read, a rule compared or a word of a set; none takes more than
// some tens of nanoseconds. Several questions may share one Steps, which is for one goroutine.
type Steps struct{ left int }

// NewSteps returns a budget of that many steps.
func NewSteps(n int) *Steps { return &Steps{left: n} }

// Left returns how many steps are left; not positive when the work had to end.
func (s *Steps) Left() int { return s.left }

// take uses n steps and reports whether that many were left. A nil Steps has no limit.
func (s *Steps) take(n int) bool {
	if s == nil {
		return true
	}
	s.left -= n
	return s.left >= 0
}

// withShare runs a check with its share of the remaining steps of several: at most so many, and at least
// some whatever the others used. It reports whether they sufficed.
func withShare(left *int, least, most int, check func(*Steps)) bool {
	steps := NewSteps(max(least, min(most, *left)))
	had := steps.left
	check(steps)
	*left -= had - max(steps.left, 0)
	return !steps.spent()
}

// spent reports whether the budget was exceeded.
func (s *Steps) spent() bool { return s != nil && s.left < 0 }
