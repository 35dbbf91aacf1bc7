package main

// findingRoutes are the questions about what detections found.
func (a api) findingRoutes() []route {
	return nil
}
