package hosts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FileError is one thing that is wrong with a hosts file.
type FileError struct {
	File   string
	Line   int    // from 1; 0 if it is about the file as a whole
	Column int    // from 1; 0 if only the line is known
	Field  string // as "hosts[0].ssh.address"; empty if it is about no field
	// Problem says what is wrong, and what would be right.
	Problem string
	// Err is the cause, as fs.ErrNotExist, or nil.
	Err error
}

// Error returns "file:line:column: field: problem", as far as they are known.
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// maxFile is how large a hosts file may be. Thousands of hosts are well below it.
const maxFile = 8 << 20

// LoadFile reads the named hosts.yaml, see [Load]. A file that cannot be read is
// a [*FileError] that wraps the cause.
func LoadFile(name string) ([]Spec, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fileError(name, err)
	}
	return Load(name, data)
}

// fileError says the name of the file only once.
func fileError(name string, err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	return &FileError{File: name, Problem: "cannot read the hosts file", Err: err}
}

// Load reads the text of a hosts.yaml; name stands for it in errors. It is strict:
// an unknown field, a wrong type, a missing address, a host listed twice is an
// error, and all of them are returned at once, joined, each a [*FileError].
// Addresses come back as they are compared: without brackets or port, an IP
// address in its shortest form, a host name in lower case. User and port come
// back with their defaults filled in, KeyPath as it was written.
func Load(name string, data []byte) ([]Spec, error) {
	l := &loader{file: name}
	var specs []Spec
	if doc := l.parse(data); doc != nil {
		specs = l.document(doc)
	}
	if len(l.errs) == 0 {
		return specs, nil
	}
	slices.SortStableFunc(l.errs, func(a, b *FileError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for _, e := range l.errs {
		errs = append(errs, e)
	}
	return nil, errors.Join(errs...)
}

// loader gathers what is wrong with one file.
type loader struct {
	file string
	errs []*FileError
}

func (l *loader) fail(n *yaml.Node, field, format string, args ...any) {
	e := &FileError{File: l.file, Field: field, Problem: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	l.errs = append(l.errs, e)
}

// parse returns the content of the one document that data is to be, or nil.
func (l *loader) parse(data []byte) *yaml.Node {
	switch {
	case len(data) > maxFile:
		l.fail(nil, "", "larger than %d MiB: not a hosts file", maxFile>>20)
		return nil
	case bytes.IndexByte(data, 0) >= 0:
		l.fail(nil, "", "it holds binary data: not a hosts file")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || isNull(doc.Content[0])):
		l.fail(nil, "", "it is empty: want a list of hosts under the key hosts")
		return nil
	case err != nil:
		l.syntax(data, err)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		at := &more
		if len(more.Content) > 0 {
			at = more.Content[0]
		}
		l.fail(at, "", "a second document begins here: want one list of hosts")
		return nil
	case !errors.Is(err, io.EOF):
		l.syntax(data, err)
		return nil
	}
	return doc.Content[0]
}

// atLine is how the YAML parser gives the place of a syntax error.
func atLine() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?`) }

// syntax reports what the YAML parser stumbled over. A tab is named as one,
// because nobody sees it.
func (l *loader) syntax(data []byte, err error) {
	for i, line := range bytes.Split(data, []byte("\n")) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 && len(bytes.TrimSpace(line)) > 0 {
			l.errs = append(l.errs, &FileError{File: l.file, Line: i + 1, Column: tab + 1,
				Problem: "a tab in the indentation: YAML takes spaces only, replace it by spaces"})
			return
		}
	}
	e := &FileError{File: l.file, Problem: "not YAML: " + atLine().ReplaceAllString(err.Error(), "")}
	if m := atLine().FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
	}
	l.errs = append(l.errs, e)
}

// document reads the top of the file.
func (l *loader) document(n *yaml.Node) []Spec {
	if n.Kind == yaml.SequenceNode {
		l.fail(n, "", "want the list under the key hosts: begin the file with \"hosts:\"")
		return nil
	}
	if l.wholeConfig(n) {
		return nil
	}
	f, ok := l.mapping(n, "", "hosts")
	if !ok {
		return nil
	}
	if f.lacks("hosts") {
		l.fail(n, "", "the key hosts is missing: want a list of hosts under it")
	}
	list := f.values["hosts"]
	if list == nil {
		return nil
	}
	items, ok := l.sequence(list, "hosts")
	if !ok {
		return nil
	}
	if len(items) == 0 {
		l.fail(list, "hosts", "it lists no host")
		return nil
	}
	specs := make([]Spec, len(items))
	at := make([]*yaml.Node, len(items))
	for i, item := range items {
		specs[i], at[i] = l.spec(item, fmt.Sprintf("hosts[%d]", i))
	}
	l.duplicates(specs, at)
	return specs
}

// wholeConfig recognises an mke4.yaml given in the place of a hosts.yaml.
func (l *loader) wholeConfig(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	keys := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys[n.Content[i].Value] = n.Content[i+1]
	}
	kind := keys["kind"]
	api := keys["apiVersion"]
	switch {
	case keys["hosts"] != nil:
		return false
	case kind != nil && kind.Value == "MkeConfig", api != nil && strings.HasPrefix(api.Value, "mke.mirantis.com/"), keys["spec"] != nil:
		l.fail(n, "", "this is a whole mke4.yaml, not a hosts.yaml: want only the hosts to act on, under the key hosts, written as below its spec.hosts")
		return true
	}
	return false
}

// duplicates refuses two entries for one host.
func (l *loader) duplicates(specs []Spec, at []*yaml.Node) {
	for _, d := range []struct {
		field string
		of    func(Spec) string
	}{
		{"ssh.address", func(s Spec) string { return s.SSH.Address }},
		{"privateAddress", func(s Spec) string { return s.PrivateAddress }},
	} {
		first := map[string]int{}
		for i, s := range specs {
			v := d.of(s)
			if v == "" {
				continue
			}
			if j, twice := first[v]; twice {
				l.fail(at[i], fmt.Sprintf("hosts[%d].%s", i, d.field), "%s is listed already, by hosts[%d] in line %d: list each host once", v, j, at[j].Line)
				continue
			}
			first[v] = i
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
