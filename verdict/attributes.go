package verdict

// Attributes are the authorization attributes rebuilt from an event's verb and requestURI.
type Attributes struct {
	Verb            string
	ResourceRequest bool
	APIGroup        string
	APIVersion      string
	Resource        string
	Subresource     string
	Namespace       string
	Name            string
	Path            string // decoded, without the query; non-resource requests only
	LabelSelector   string // raw, list/watch/deletecollection only
	FieldSelector   string // raw, list/watch/deletecollection only
}

// Question returns a check in words, for people.
func (a *Attributes) Question() string {
	if !a.ResourceRequest {
		return a.Verb + " " + a.Path
	}
	s := a.Verb + " " + a.Resource
	if a.APIGroup != "" {
		s += "." + a.APIGroup
	}
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}
