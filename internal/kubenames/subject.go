package kubenames

import (
	"fmt"
	"strings"
)

// Subject is whom a question names: a user, by the name that requests carry, or a group.
type Subject struct {
	Name  string
	Group bool
}

// SubjectForms says how a subject may be written, for messages and help.
const SubjectForms = "sa/NAMESPACE:NAME, user/NAME, group/NAME, node/NAME, or a user name as audit logs have it"

// ParseSubject reads a subject as people write it, and as answers print it: sa/NAMESPACE:NAME and
// ServiceAccount/NAMESPACE/NAME, user/NAME, group/NAME and node/NAME, each with a colon behind the kind as well;
// anything else is a user name. A user whose name begins like one of these is user/ and the name.
func ParseSubject(text string) (Subject, error) {
	if strings.HasPrefix(text, ServiceAccountPrefix) {
		if _, _, ok := SplitServiceAccount(text); !ok {
			return Subject{}, fmt.Errorf("invalid subject %q: want %sNAMESPACE:NAME or sa/NAMESPACE:NAME; a user who is "+
				"really called that is user/ and the name", text, ServiceAccountPrefix)
		}
		return Subject{Name: text}, nil
	}
	end := strings.IndexAny(text, "/:")
	if end < 0 {
		return Subject{Name: text}, nil
	}
	name, want := text[end+1:], ""
	var out Subject
	switch kind := strings.ToLower(text[:end]); kind {
	case "sa", "serviceaccount", "serviceaccounts":
		namespace, account, ok := strings.Cut(name, ":")
		if !ok {
			namespace, account, ok = strings.Cut(name, "/")
		}
		if want = "sa/NAMESPACE:NAME"; ok && namespace != "" && account != "" && !strings.ContainsAny(namespace+account, ":/") {
			out.Name = ServiceAccount(namespace, account)
		}
	case "user", "users":
		out.Name, want = name, "user/NAME"
	case "group", "groups":
		out, want = Subject{name, true}, "group/NAME"
	case "node", "nodes":
		if want = "node/NAME"; name != "" {
			out.Name = Node(name)
		}
	default:
		return Subject{Name: text}, nil
	}
	if out.Name == "" {
		return out, fmt.Errorf("invalid subject %q: want %s", text, want)
	}
	return out, nil
}
