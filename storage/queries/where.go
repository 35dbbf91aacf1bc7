package queries

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/statement"
)

// Condition selects requests by a column. The values of one column are alternatives, those of several columns restrict each other, and what
// is left out is left out in any case.
type Condition struct {
	Column string // one of Columns
	Value  string
	Begins bool // the column begins with the value
	Not    bool // leaves out what the condition selects
}

// selectable is a column that requests are selected and counted by.
type selectable struct {
	name string
	sql  string // over a row of events
	is   kind
	// counted: requests are counted by it. Of the others nearly every request has a value of its own.
	counted bool
	// inVolume: the rollup by the minute has it.
	inVolume bool
}

// kind is what a column holds.
type kind uint8

const (
	isText   kind = iota
	isNumber      // a number, written as one
	isList        // several texts, of which any counts
	isID          // an audit ID
)

// ofGroups are the groups a request was authorized with.
const ofGroups = "if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)"

// refusedText is whether a request was refused, by whomever; ownText whether its subject is Kubernetes' own.
const (
	refusedText = "if(" + wasRefused + ", 'yes', 'no')"
	ownText     = "if(" + notOwn + ", 'no', 'yes')"
)

// ofRules are the rules of detections that a request has marks of.
const ofRules = "arrayDistinct(arrayMap(h -> substringIndex(h, '/', 1), hits))"

// selectables are the columns, those that are read fastest first: that is the order in which a list looks at them.
var selectables = []selectable{ //nolint:gochecknoglobals // constant table
	{"subject", "subject", isText, true, false},
	{"verb", "verb", isText, true, false},
	{"resource", "object_resource", isText, true, false},
	{"decision", "recorded", isText, true, true},
	{"outcome", "outcome", isText, true, true},
	{"class", "class", isText, true, true},
	{"replayed", "replayed", isText, true, true},
	{"user", "user_name", isText, true, false},
	{"impersonated", "impersonated_name", isText, true, false},
	{"apiGroup", "object_api_group", isText, true, false},
	{"subresource", "object_subresource", isText, true, false},
	{"namespace", "object_namespace", isText, true, false},
	{"userAgent", "user_agent", isText, true, false},
	{"apiserver", "apiserver", isText, true, false},
	{"authorizer", "authorizer", isText, true, false},
	{"code", "code", isNumber, true, false},
	{"refused", refusedText, isText, true, false},
	{"system", ownText, isText, true, false},
	{"name", "object_name", isText, true, false},
	{"credential", "credential", isText, false, false},
	{"auditID", "", isID, false, false},
	{"rule", ofRules, isList, true, false},
	{"sourceIP", "source_ips", isList, true, false},
	{"group", ofGroups, isList, true, false},
	{"path", "substringIndex(request_uri, '?', 1)", isText, false, false},
}

// Columns returns the names of the columns that requests are selected by; counted are those they are counted by.
func Columns() (all, counted []string) {
	for i := range selectables {
		all = append(all, selectables[i].name)
		if selectables[i].counted {
			counted = append(counted, selectables[i].name)
		}
	}
	return all, counted
}

// columnOf returns a column by its name, nil if there is none.
func columnOf(name string) *selectable {
	i := slices.IndexFunc(selectables, func(s selectable) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &selectables[i]
}

// where returns what a list of conditions says in SQL, one text a column and sign, and adds the parameters.
func where(list []Condition, p clickhouse.Parameters) (out []string, err error) {
	type side struct {
		column string
		not    bool
	}
	by := map[side][]Condition{}
	var sides []side
	for _, c := range list {
		s := side{c.Column, c.Not}
		if columnOf(c.Column) == nil {
			return nil, fmt.Errorf("requests are not selected by %q", c.Column)
		}
		if by[s] == nil {
			sides = append(sides, s)
		}
		by[s] = append(by[s], c)
	}
	place := func(s side) int {
		return slices.IndexFunc(selectables, func(x selectable) bool { return x.name == s.column })
	}
	slices.SortStableFunc(sides, func(a, b side) int { return cmp.Compare(place(a), place(b)) })
	for _, s := range sides {
		text, err := columnOf(s.column).among(by[s], p)
		if err != nil {
			return nil, err
		}
		if s.not {
			text = "NOT " + text
		}
		out = append(out, text)
	}
	if hash := ofObject(by[side{"resource", false}], by[side{"namespace", false}], by[side{"name", false}], p); hash != "" {
		out = append(out, hash)
	}
	return out, nil
}

// ofObject returns the condition that has an index where one object is named.
func ofObject(resource, namespace, name []Condition, p clickhouse.Parameters) string {
	values := map[string]string{}
	for key, of := range map[string][]Condition{"of_resource": resource, "of_namespace": namespace, "of_name": name} {
		if len(of) != 1 || of[0].Begins {
			return ""
		}
		values[key] = statement.Text(of[0].Value)
	}
	for key, v := range values {
		p[key] = v
	}
	return "cityHash64(object_resource, object_namespace, object_name) = " +
		"cityHash64({of_resource:String}, {of_namespace:String}, {of_name:String})"
}

// among returns the condition that a column has one of some values, or begins with one of them.
func (s *selectable) among(list []Condition, p clickhouse.Parameters) (string, error) {
	var whole, alternatives []string
	bind := binding(p)
	for _, c := range list {
		switch {
		case s.is == isID:
			alternatives = append(alternatives, ofID(c, bind))
		case !c.Begins:
			whole = append(whole, c.Value)
		case s.is == isList:
			alternatives = append(alternatives, "arrayExists(x -> startsWith(x, {"+bind(statement.Text(c.Value))+":String}), "+s.sql+")")
		case s.is == isNumber:
			alternatives = append(alternatives, "startsWith(toString("+s.sql+"), {"+bind(statement.Text(c.Value))+":String})")
		default:
			alternatives = append(alternatives, "startsWith("+s.sql+", {"+bind(statement.Text(c.Value))+":String})")
		}
	}
	if len(whole) > 0 {
		text, err := s.oneOf(whole, bind)
		if err != nil {
			return "", err
		}
		alternatives = append(alternatives, text)
	}
	if len(alternatives) == 1 {
		return alternatives[0], nil
	}
	return "(" + strings.Join(alternatives, " OR ") + ")", nil
}

// oneOf returns the condition that a column is one of some values.
func (s *selectable) oneOf(values []string, bind func(string) string) (string, error) {
	switch s.is {
	case isNumber:
		numbers := make([]int32, len(values))
		for i, v := range values {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil {
				return "", fmt.Errorf("%s is a number, not %q", s.name, v)
			}
			numbers[i] = int32(n)
		}
		return s.sql + " IN {" + bind(statement.Numbers(numbers)) + ":Array(Int32)}", nil
	case isList:
		return "hasAny(" + s.sql + ", {" + bind(statement.Texts(values)) + ":Array(LowCardinality(String))})", nil
	}
	if len(values) == 1 {
		return s.sql + " = {" + bind(statement.Text(values[0])) + ":String}", nil
	}
	return s.sql + " IN {" + bind(statement.Texts(values)) + ":Array(String)}", nil
}
