package doctor

import "github.com/retrial-io/retrial/query"

// Questions returns the questions about connections and the installation.
func (a *Service) Questions() []query.Question {
	return []query.Question{
		query.NewQuestion(query.CostQuery, "the progress of a cluster's connection", a.Connection),
		query.NewQuestion(query.CostQuery, "the health of the installation, and of every cluster", a.Doctor),
	}
}
