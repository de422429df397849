package config

import "unicode/utf8"

// Nearest is the name among known that is most similar to name: with the fewest letters
// added, left out or changed, at most two, or three for a name of eight letters and more. It
// is empty if there is none.
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

// edits is the edit distance of a and b.
func edits(a, b string) int {
	to := []rune(b)
	row := make([]int, len(to)+1) // distances of the current beginning of a to each beginning of b
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
