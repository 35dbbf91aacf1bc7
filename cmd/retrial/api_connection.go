package main

// connectionRoutes are the questions about how far the connection of a cluster is.
func (a api) connectionRoutes() []route {
	return nil
}
