package hosts

import "strings"

// parseOSRelease reads an os-release by its grammar: assignments of a shell, one a
// line, comments and blank lines between. A field that is not there stays empty.
func parseOSRelease(b block) OS {
	var o OS
	if b.status != Yes {
		return o
	}
	for _, line := range b.lines {
		line = strings.TrimSpace(line)
		key, raw, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value, ok := shellValue(raw)
		if !ok {
			continue
		}
		switch key {
		case "ID":
			o.ID = strings.ToLower(value)
		case "ID_LIKE":
			o.IDLike = strings.Fields(strings.ToLower(value))
		case "VERSION_ID":
			o.VersionID = value
		case "PRETTY_NAME":
			o.Name = value
		case "NAME":
			if o.Name == "" {
				o.Name = value
			}
		}
	}
	return o
}

// shellValue reads the right side of an assignment: parts in double quotes with
// escapes, parts in single quotes, and bare parts. It is false for what a shell
// would do more with, or would refuse.
func shellValue(s string) (string, bool) {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			if i++; i == len(s) {
				return "", false
			}
			// In double quotes only these are escaped; before others the backslash stays.
			if quote == '"' && !strings.ContainsRune("\"$`\\", rune(s[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case quote != '\'' && (c == '$' || c == '`'):
			return "", false
		case quote == 0 && strings.IndexByte(" \t;&|<>()", c) >= 0:
			if rest := strings.TrimSpace(s[i:]); rest == "" || strings.HasPrefix(rest, "#") {
				return b.String(), true
			}
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), quote == 0
}
