package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes untrusted text safe for a terminal: characters that would move its cursor, change
// its colours or the direction of text are written as escapes, such as \u001b.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unsafe) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !utf8.RuneStart(s[i]), r == utf8.RuneError && s[i] >= utf8.RuneSelf && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Plain writes text of several lines, cleaned like by Clean except for newlines and tabs. No
// character may be split between two calls.
func Plain(w io.Writer) io.Writer { return plain{w} }

type plain struct{ w io.Writer }

func (p plain) Write(text []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		line, ended := strings.CutSuffix(line, "\n")
		for i, cell := range strings.Split(line, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Clean(cell))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// escape makes JSON safe for a terminal: the characters that Clean escapes occur only in
// strings, and are written as JSON escapes, so that programs read the same.
func escape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || !unsafe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// unsafe reports that a rune is unsafe for a terminal: controls, and invisible formatting
// characters, such as marks of direction. Newlines are unsafe in a cell.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Co, r)
}

// column is a column of a table.
type column struct {
	title string
	of    func(row object) string
	right bool // numbers
	whole bool // never cut: it is the requested value
}

// maxCell is the maximum width of a cell, in runes.
const maxCell = 80

// table prints rows under titles.
func table(w io.Writer, columns []column, rows []any) error {
	cells := make([][]string, 0, len(rows)+1)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	cells = append(cells, titles)
	for _, row := range rows {
		of, _ := row.(object)
		line := make([]string, len(columns))
		for i, c := range columns {
			line[i] = Clean(c.of(of))
			if !c.whole {
				line[i] = cut(line[i])
			}
		}
		cells = append(cells, line)
	}
	widths := make([]int, len(columns))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range cells {
		var b strings.Builder
		for i, cell := range line {
			if i > 0 {
				b.WriteString("  ")
			}
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if columns[i].right {
				b.WriteString(space + cell)
			} else {
				b.WriteString(cell + space)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// cut shortens a cell that is too wide.
func cut(cell string) string {
	if utf8.RuneCountInString(cell) <= maxCell {
		return cell
	}
	return string([]rune(cell)[:maxCell-1]) + "…"
}

// member is a column for a member, or, with a dot, for a member of that member.
func member(title, name string) column {
	return column{title: title, of: func(row object) string { return written(dig(row, name)) }}
}

// tags is a column for a resource's tags, in the order of their keys.
var tags = column{title: "TAGS", of: func(row object) string {
	all, _ := row["tags"].(object)
	if len(all) == 0 {
		return "–"
	}
	var b strings.Builder
	for i, key := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(key + "=" + written(all[key]))
	}
	return b.String()
}}

// count is a column of numbers.
func count(title, name string) column {
	c := member(title, name)
	c.right = true
	return c
}

// age is a column for a time in seconds.
func age(title, name string) column {
	return column{title: title, right: true, of: func(row object) string {
		n, ok := dig(row, name).(json.Number)
		seconds, err := n.Float64()
		if !ok || err != nil {
			return "–"
		}
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}}
}

// dig finds a member by its path.
func dig(row object, path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	value := row[name]
	if !deeper {
		return value
	}
	inner, _ := value.(object)
	return dig(inner, rest)
}

// written is a value in a cell.
func written(value any) string {
	switch v := value.(type) {
	case nil:
		return "–"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		return string(text)
	}
}
