package deliverystream

import (
	"fmt"
	"strconv"
	"time"
)

// appendTime formats a time by a pattern of Java's DateTimeFormatter, as far as names need it:
// letters are fields, repeated for their width; quoted text, and other characters, are literal.
// ok is false for unknown letters.
func appendTime(dst []byte, pattern string, t time.Time) (name []byte, ok bool) {
	for i := 0; i < len(pattern); {
		c := pattern[i]
		if c == '\'' {
			end := i + 1
			for end < len(pattern) && pattern[end] != '\'' {
				end++
			}
			if end == len(pattern) {
				return dst, false
			}
			if end == i+1 {
				dst = append(dst, '\'')
			} else {
				dst = append(dst, pattern[i+1:end]...)
			}
			i = end + 1
			continue
		}
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			if c == '{' || c == '}' || c == '#' || c == '[' || c == ']' { // reserved, or optional parts
				return dst, false
			}
			dst = append(dst, c)
			i++
			continue
		}
		width := 1
		for i+width < len(pattern) && pattern[i+width] == c {
			width++
		}
		if dst, ok = appendField(dst, c, width, t); !ok {
			return dst, false
		}
		i += width
	}
	return dst, true
}

func appendField(dst []byte, c byte, width int, t time.Time) ([]byte, bool) {
	number := func(value, limit int) ([]byte, bool) {
		return fmt.Appendf(dst, "%0*d", width, value), width <= limit
	}
	switch c {
	case 'y', 'u':
		if width == 2 {
			return fmt.Appendf(dst, "%02d", t.Year()%100), true
		}
		return number(t.Year(), 9)
	case 'M', 'L':
		switch {
		case width <= 2:
			return number(int(t.Month()), 2)
		case width == 3:
			return append(dst, t.Month().String()[:3]...), true
		default:
			return append(dst, t.Month().String()...), width == 4
		}
	case 'Q', 'q':
		return number((int(t.Month())+2)/3, 2)
	case 'd':
		return number(t.Day(), 2)
	case 'D':
		return number(t.YearDay(), 3)
	case 'E':
		if width <= 3 {
			return append(dst, t.Weekday().String()[:3]...), true
		}
		return append(dst, t.Weekday().String()...), width == 4
	case 'a':
		return t.AppendFormat(dst, "PM"), width == 1
	case 'H':
		return number(t.Hour(), 2)
	case 'k': // 1 to 24
		return number((t.Hour()+23)%24+1, 2)
	case 'K': // 0 to 11
		return number(t.Hour()%12, 2)
	case 'h': // 1 to 12
		return number((t.Hour()+11)%12+1, 2)
	case 'm':
		return number(t.Minute(), 2)
	case 's':
		return number(t.Second(), 2)
	case 'S': // a fraction
		const digits = 9
		fraction := fmt.Sprintf("%09d", t.Nanosecond())
		return append(dst, fraction[:min(width, digits)]...), width <= digits
	case 'A':
		return number(int(time.Duration(t.Hour())*time.Hour+time.Duration(t.Minute())*time.Minute+time.Duration(t.Second())*time.Second)/int(time.Millisecond)+t.Nanosecond()/int(time.Millisecond), 9)
	case 'n':
		return number(t.Nanosecond(), 9)
	case 'z':
		return t.AppendFormat(dst, "MST"), width <= 3
	case 'Z', 'x':
		return t.AppendFormat(dst, "-0700"), width <= 3
	case 'X':
		if width == 3 {
			return t.AppendFormat(dst, "Z07:00"), true
		}
		return t.AppendFormat(dst, "Z0700"), width <= 3
	case 'V':
		return append(dst, t.Location().String()...), width == 2
	case 'e':
		return strconv.AppendInt(dst, int64(t.Weekday())+1, 10), width == 1
	}
	return dst, false
}
