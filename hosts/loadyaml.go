package hosts

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields are the values of a mapping by key.
type fields struct {
	node      *yaml.Node
	values    map[string]*yaml.Node
	explained map[string]bool // keys that are missing for a reason that was reported
}

// lacks says whether key is missing without anything having been said about it.
func (f fields) lacks(key string) bool { return f.values[key] == nil && !f.explained[key] }

// mapping returns the fields of n. A key that is not among known, or stands there
// twice, is reported; one whose value is an explicit null counts as left out.
func (l *loader) mapping(n *yaml.Node, field string, known ...string) (fields, bool) {
	n = resolve(n)
	f := fields{n, map[string]*yaml.Node{}, map[string]bool{}}
	if n.Kind != yaml.MappingNode {
		l.fail(n, field, "want keys and values (%s), got %s", strings.Join(known, ", "), kindOf(n))
		return f, false
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		name := key.Value
		if key.Kind != yaml.ScalarNode || name == "<<" {
			l.fail(key, field, "merge keys and keys that are no text are not understood here: want one of the keys %s", strings.Join(known, ", "))
			continue
		}
		if !slices.Contains(known, name) {
			l.fail(key, join(field, name), "unknown field%s", suggestion(name, known))
			f.explained[near(name, known)] = true
			continue
		}
		if first := seen[name]; first != nil {
			l.fail(key, join(field, name), "given twice, first in line %d", first.Line)
			continue
		}
		seen[name] = key
		switch {
		case isNull(value) && value.Value == "":
			l.fail(key, join(field, name), "it has no value (is what belongs to it indented deeper?)")
			f.explained[name] = true
		case isNull(value):
		default:
			f.values[name] = value
		}
	}
	return f, true
}

func (l *loader) sequence(n *yaml.Node, field string) ([]*yaml.Node, bool) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		l.fail(n, field, "want a list, got %s: begin each entry with \"- \"", kindOf(n))
		return nil, false
	}
	items := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		items[i] = resolve(item)
	}
	return items, true
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for range maxHops {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}

// kindOf names what n is, for people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!str":
			return "text"
		case "!!int", "!!float":
			return "the number " + n.Value
		case "!!bool":
			return "the truth value " + n.Value
		case "!!null":
			return "nothing"
		case "!!timestamp":
			return "the date " + n.Value
		}
		return n.ShortTag()
	}
	return "nothing"
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
