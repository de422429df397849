package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

func noDuration(s string) error {
	return fmt.Errorf(`want a duration like "23d", "1d12h", "90m" or "1.5s", have %.40q`, s)
}

// ParseDuration parses a duration in Go's form, optionally preceded by whole or decimal days
// ("1.5d"). It refuses negative ones and those above 292 years, which time.Duration cannot
// represent.
func ParseDuration(s string) (time.Duration, error) {
	number, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		number, rest = "", s
	}
	var d time.Duration
	if hasDays {
		if number == "" || strings.Trim(number, "0123456789.") != "" {
			return 0, noDuration(s)
		}
		days, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, noDuration(s)
		}
		if days >= float64(1<<63-1)/float64(day) {
			return 0, tooLong(s)
		}
		d = time.Duration(days * float64(day))
	}
	if rest == "" && hasDays {
		return d, nil
	}
	after, err := time.ParseDuration(rest)
	if err != nil || after < 0 || (hasDays && strings.ContainsAny(rest[:1], "+-")) {
		return 0, noDuration(s)
	}
	if d += after; d < 0 {
		return 0, tooLong(s)
	}
	return d, nil
}

func tooLong(s string) error { return fmt.Errorf("%s is longer than 292 years", s) }

// units are the units of bytes; a longer unit precedes its suffixes.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseBytes parses a number of bytes: a whole number, or a whole or decimal one with a unit:
// B, kB, MB, GB, TB (powers of 1,000), KiB, MiB, GiB, TiB (of 1,024). A fraction of a byte is
// dropped. It refuses what an int64 cannot represent. A number without a unit may be
// negative, for the flag's own check to refuse.
func ParseBytes(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	for _, unit := range units {
		number, ok := strings.CutSuffix(s, unit.name)
		number = strings.TrimSuffix(number, " ")
		if !ok {
			continue
		}
		if number == "" || strings.Trim(number, "0123456789.") != "" {
			break
		}
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			break
		}
		if f *= unit.bytes; f >= math.MaxInt64 {
			return 0, fmt.Errorf("%s is more than 8 EiB", s)
		}
		return int64(f), nil
	}
	return 0, fmt.Errorf(`want bytes like "10GiB", "512MiB", "10GB" or "1048576", have %q`, s)
}
