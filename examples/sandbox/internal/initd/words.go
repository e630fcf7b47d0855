package initd

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// splitWords cuts a command line into words the way systemd does: white space parts, quotes of
// both kinds hold together, and a backslash escapes.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false // within a word, even one that is empty so far
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			if i+1 == len(s) {
				return nil, fmt.Errorf("%q ends in a backslash", s)
			}
			i++
			c, used := unescape(s[i:])
			word.WriteByte(c)
			i += used - 1
			in = true
		case quote != 0:
			if c == quote {
				quote = 0
				continue
			}
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%q has no closing %c", s, quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// unescape reads what follows a backslash, and says how many bytes of it.
func unescape(s string) (byte, int) {
	switch s[0] {
	case 'n':
		return '\n', 1
	case 't':
		return '\t', 1
	case 'r':
		return '\r', 1
	case 's':
		return ' ', 1
	case 'x':
		if len(s) >= 3 {
			if n, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
				return byte(n), 3
			}
		}
	}
	return s[0], 1
}

// expand fills in a word of ExecStart: %% and $$ are the characters, %n the unit, %H the host,
// ${NAME} and a word that is just $NAME what the environment has.
func expand(word, unitName, host string, env map[string]string) []string {
	if name, ok := strings.CutPrefix(word, "$"); ok && name != "" && strings.Trim(name, nameChars) == "" {
		return strings.Fields(env[name]) // as systemd: such a word is split
	}
	fill := map[byte]string{'%': "%", 'n': unitName, 'N': strings.TrimSuffix(unitName, ".service"), 'H': host}
	var out strings.Builder
	for i := 0; i < len(word); i++ {
		rest := word[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "${") && strings.Contains(rest, "}"):
			end := strings.IndexByte(rest, '}')
			out.WriteString(env[rest[2:end]])
			i += end
		case rest[0] == '%' && len(rest) > 1 && fill[rest[1]] != "":
			out.WriteString(fill[rest[1]])
			i++
		default:
			out.WriteByte(rest[0])
		}
	}
	return []string{out.String()}
}

const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// readEnvFile reads the assignments of an EnvironmentFile. One whose name begins with "-" may be
// missing.
func readEnvFile(name string) ([]string, error) {
	path, optional := strings.CutPrefix(name, "-")
	data, err := os.ReadFile(path)
	if err != nil {
		if optional && os.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}
	return parseEnv(string(data)), nil
}

func parseEnv(text string) []string {
	var env []string
	for _, line := range logicalLines(text) {
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || strings.Trim(key, nameChars) != "" {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		env = append(env, key+"="+value)
	}
	return env
}
