package event

// TakenOver reports whether the item's own text is what AppendJSON appends.
func (it *Item) TakenOver() bool { return it.plain != nil }
