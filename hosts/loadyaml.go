package hosts

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mapping returns the values of n by key. A key that is not among known, or stands
// there twice, is reported; one whose value is an explicit null counts as left out.
func (l *loader) mapping(n *yaml.Node, field string, known ...string) (map[string]*yaml.Node, bool) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		l.fail(n, field, "want %s, got %s", strings.Join(known, ", ")+" as keys", kindOf(n))
		return nil, false
	}
	m := map[string]*yaml.Node{}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		name := key.Value
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || name == "<<" {
			l.fail(key, field, "want one of the keys %s; merge keys and compound keys are not understood here", strings.Join(known, ", "))
			continue
		}
		if !slices.Contains(known, name) {
			l.fail(key, join(field, name), "unknown field%s", suggestion(name, known))
			continue
		}
		if first := seen[name]; first != nil {
			l.fail(key, join(field, name), "given twice, first in line %d", first.Line)
			continue
		}
		seen[name] = key
		switch {
		case isNull(value) && value.Value == "":
			l.fail(key, join(field, name), "it has no value: is what follows indented deeper than it?")
		case isNull(value):
		default:
			m[name] = value
		}
	}
	return m, true
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

// hasKey says whether n is a mapping that has the key, whatever its value.
func hasKey(n *yaml.Node, key string) bool {
	n = resolve(n)
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key && !(isNull(n.Content[i+1]) && n.Content[i+1].Value != "") {
			return true
		}
	}
	return false
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

// suggestion is the end of a complaint about word.
func suggestion(word string, known []string) string {
	if s := near(word, known); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return "; known are " + strings.Join(known, ", ")
}
