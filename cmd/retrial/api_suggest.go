package main

// suggestRoutes are the questions about a subject and the least roles it needs.
func (a api) suggestRoutes() []route {
	return []route{
		{"subject", []string{"cluster", "user", "from", "to"}, a.query(a.subject)},
	}
}
