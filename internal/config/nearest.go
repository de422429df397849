package config

import "unicode/utf8"

// Nearest is the name among known that somebody may have meant by name: the one with
// the fewest letters added, left out or changed, at most two, or three of a name of
// eight letters and more. It is empty if none is so near.
func Nearest(name string, known []string) string {
	best, least := "", 3
	if utf8.RuneCountInString(name) >= 8 {
		least = 4
	}
	for _, k := range known {
		if d := edits(name, k); d < least && d < utf8.RuneCountInString(name) {
			best, least = k, d
		}
	}
	return best
}

// edits counts the letters that make b out of a.
func edits(a, b string) int {
	to := []rune(b)
	row := make([]int, len(to)+1) // of the letters of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i, letter := range []rune(a) {
		before := row[0]
		row[0] = i + 1
		for j := range to {
			change := before
			if letter != to[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
