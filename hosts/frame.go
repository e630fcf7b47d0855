package hosts

import (
	"fmt"
	"strings"
)

// block is one block of the script's output.
type block struct {
	lines  []string
	status Tri
}

// frame is the script's output taken apart: its values and its blocks by name.
type frame struct {
	values map[string]string
	blocks map[string]block
}

// splitFrame takes apart what stands between the marker's begin and end. It is
// strict in there and blind to what is around it: text of a login script before,
// and whatever comes after.
func splitFrame(marker, out string) (frame, error) {
	f := frame{values: map[string]string{}, blocks: map[string]block{}}
	bad := func(format string, args ...any) (frame, error) {
		return frame{}, fmt.Errorf("what the facts script printed is not understood: "+format, args...)
	}
	_, body, ok := strings.Cut(out, "\n"+marker+" begin\n")
	if !ok {
		return bad("its begin is missing")
	}
	body, _, ok = strings.Cut(body, "\n"+marker+" end\n")
	if !ok {
		return bad("its end is missing: it was cut off")
	}
	open := ""
	for line := range strings.SplitSeq(body, "\n") {
		control, ok := strings.CutPrefix(line, marker+" ")
		if !ok {
			if open == "" {
				return bad("a line outside of any block: %.80q", line)
			}
			b := f.blocks[open]
			b.lines = append(b.lines, line)
			f.blocks[open] = b
			continue
		}
		verb, rest, _ := strings.Cut(control, " ")
		name, value, _ := strings.Cut(rest, " ")
		_, knownBlock := f.blocks[name]
		_, knownValue := f.values[name]
		switch {
		case name == "":
			return bad("a control line without a name: %.80q", control)
		case verb == "=" && open == "" && !knownValue && !knownBlock:
			f.values[name] = strings.TrimSpace(value)
		case verb == "+" && open == "" && !knownValue && !knownBlock && value == "":
			f.blocks[name] = block{}
			open = name
		case verb == "-" && open == name && open != "":
			b := f.blocks[name]
			if err := b.status.UnmarshalText([]byte(value)); err != nil {
				return bad("block %s: %v", name, err)
			}
			if n := len(b.lines); n > 0 && b.lines[n-1] == "" {
				b.lines = b.lines[:n-1] // the line break before the control line
			}
			f.blocks[name] = b
			open = ""
		default:
			return bad("%.80q where it does not belong", control)
		}
	}
	if open != "" {
		return bad("block %s has no end", open)
	}
	return f, nil
}

// reader takes names out of a frame; what is missing, or left over at the end, is
// an error: the script and its reader are of one build.
type reader struct {
	frame
	missing []string
}

// value returns a value, "" if it was not known.
func (r *reader) value(name string) string {
	v, ok := r.values[name]
	if !ok {
		r.missing = append(r.missing, name)
	}
	delete(r.values, name)
	return v
}

// tri returns a value that is yes or no, else Unknown.
func (r *reader) tri(name string) (t Tri) {
	if t.UnmarshalText([]byte(r.value(name))) != nil {
		return Unknown
	}
	return t
}

// block returns a block.
func (r *reader) block(name string) block {
	b, ok := r.blocks[name]
	if !ok {
		r.missing = append(r.missing, name)
	}
	delete(r.blocks, name)
	return b
}

// has says whether there is a value or block of that name.
func (r *reader) has(name string) bool {
	_, v := r.values[name]
	_, b := r.blocks[name]
	return v || b
}

// done says what is wrong with the names.
func (r *reader) done() error {
	for name := range r.values {
		return fmt.Errorf("what the facts script printed is not understood: the unknown value %.80q", name)
	}
	for name := range r.blocks {
		return fmt.Errorf("what the facts script printed is not understood: the unknown block %.80q", name)
	}
	if len(r.missing) > 0 {
		return fmt.Errorf("what the facts script printed is not understood: %s is missing", strings.Join(r.missing, ", "))
	}
	return nil
}

// text is a block's content as it was.
func (b block) text() string { return strings.Join(b.lines, "\n") }

// first is a block's first line, "" if there is none.
func (b block) first() string {
	if len(b.lines) == 0 {
		return ""
	}
	return strings.TrimSpace(b.lines[0])
}
