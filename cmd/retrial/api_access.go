package main

// accessRoutes are the questions about who can do what, and could at a time.
func (a api) accessRoutes() []route {
	return nil
}
