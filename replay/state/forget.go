package state

import "errors"

// ErrUncertain is returned for an observation whose content is still needed: of a write that may not
// have been done, or that has its object depend on what it follows, and of what a read showed, which
// may be all that tells of such a write.
var ErrUncertain = errors.New("the content of an uncertain write is not forgotten")

// ForgetContent returns an encoded observation of an object without what it says the object held.
// That the object was written then, and its version, stays: a State that is told so knows that it
// does not know the content.
func ForgetContent(observation []byte) ([]byte, error) {
	o, err := DecodeObservation(observation)
	switch {
	case err != nil:
		return nil, err
	case o.Object != nil && (o.Unknown || o.Patch || o.Source == SourceRead):
		return nil, ErrUncertain
	case o.Object != nil && !o.Unchanged && !o.Deleted:
		o.Unknown = true
	}
	o.Object = nil
	return o.Append(nil), nil
}
