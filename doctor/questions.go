package doctor

import "github.com/retrial-io/retrial/query"

// Questions returns the questions about connections and the installation.
func (a *Service) Questions() []query.Question {
	return []query.Question{
		query.NewQuestion(query.CostQuery, "how far the connection of a cluster is", a.Connection),
		query.NewQuestion(query.CostQuery, "how the installation does, and every cluster", a.Doctor),
	}
}
