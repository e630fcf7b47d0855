package hosts

import (
	"fmt"
	"slices"
	"strings"
)

// suggestion is the end of a complaint about word.
func suggestion(word string, known []string) string {
	if s := near(word, known); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return "; known are " + strings.Join(known, ", ")
}

// near returns the one of known that word is most likely meant to be, or "".
func near(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if strings.EqualFold(word, k) {
			return k
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if i := slices.IndexFunc(known, func(k string) bool {
		return word != "" && (strings.HasPrefix(k, word+"+") || strings.HasPrefix(word, k))
	}); best == "" && i >= 0 {
		return known[i]
	}
	return best
}

// distance is how many letters have to be changed, added, taken out or swapped
// with their neighbour to make b out of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j]+cost, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], last[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
