// Package soak gives tests a short form, which every change runs, a full one, and a long
// one, for machines that have an hour to spare. Four variables say which:
//
//	GODWIT_FULL=1         the full form (make full)
//	GODWIT_SOAK=1         the long form (make soak)
//	GODWIT_SOAK_TIME=10m  how long each campaign then continues (default 1m)
//	GODWIT_SEED=42        the seed of everything random, to replay a failure
//
// The short form draws its seeds from the test's name, so that it is the same each
// time; the long form draws others each time. A test that draws anything prints its
// seed as the command that draws the same again.
package soak

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	variable     = "GODWIT_SOAK"
	fullVariable = "GODWIT_FULL"
	timeVariable = "GODWIT_SOAK_TIME"
	seedVariable = "GODWIT_SEED"
	defaultTime  = time.Minute
)

// Enabled reports whether tests are to run in their long form.
func Enabled() bool { return isSet(variable) }

// full reports whether tests are to run at full size. Under the race detector they never
// do: with it Pebble checks itself, too, which takes twenty times as long.
func full() bool { return !raced && (isSet(fullVariable) || Enabled()) }

func isSet(variable string) bool {
	v := os.Getenv(variable)
	return v != "" && v != "0"
}

// Time is how long a test that runs once goes on when soaking; otherwise 0.
func Time(t testing.TB) time.Duration {
	t.Helper()
	if !Enabled() {
		return 0
	}
	return duration(t)
}

// Rounds is how often to do something: short, or long when soaking.
func Rounds(t testing.TB, short, long int) int {
	t.Helper()
	if Enabled() {
		return long
	}
	return short
}

// Seeds are n seeds, the first of which is that of Seed.
func Seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	out := []uint64{Seed(t)}
	for r := Rand(out[0], 0); len(out) < n; {
		out = append(out, r.Uint64())
	}
	return out
}

// Size is how much a test does: quick is as much as has every goroutine meet every other
// and reaches each branch, full what make full and make soak run.
func Size(quick, atFull int) int {
	if full() {
		return atFull
	}
	return quick
}

// Spread is which of n things a test looks at: all at full size, else so many as quick,
// from the first to the last, at even distances.
func Spread(n, quick int) []int { return spread(n, Size(quick, n)) }

func spread(n, most int) (out []int) {
	if most = min(n, most); most == 1 {
		return []int{0}
	}
	for i := range most {
		out = append(out, i*(n-1)/(most-1))
	}
	return out
}

// Seed is the seed of what a test draws: GODWIT_SEED, or the name's, or a random one
// when soaking. It logs the command that repeats it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, given := fixedSeed(t)
	if !given {
		seed = seeds(t).Uint64()
	}
	announce(t, seed)
	return seed
}

// Rand is a source drawn from a seed. Places that draw independently of each other
// each take a stream of their own.
func Rand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// Campaign runs rounds, each a subtest with a seed of its own, until one fails: short
// of them, or for GODWIT_SOAK_TIME when soaking. With GODWIT_SEED it runs the round of
// that seed only.
func Campaign(t *testing.T, short int, round func(t *testing.T, seed uint64)) {
	t.Helper()
	if seed, given := fixedSeed(t); given {
		announce(t, seed)
		run(t, seed, round)
		return
	}
	until, draw := time.Now().Add(duration(t)), seeds(t)
	for n := 0; n < short || Enabled() && time.Now().Before(until); n++ {
		seed := draw.Uint64()
		if !run(t, seed, round) {
			announce(t, seed)
			return
		}
	}
}

// seeds are those of a test's name, or random ones when soaking.
func seeds(t testing.TB) *rand.Rand {
	if Enabled() {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // does not fail
	return Rand(name.Sum64(), 0)
}

func run(t *testing.T, seed uint64, round func(t *testing.T, seed uint64)) (passed bool) {
	return t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { round(t, seed) })
}

// announce logs how to draw the same again.
func announce(t testing.TB, seed uint64) {
	t.Helper()
	t.Logf("repeat with: %s", command(t.Name(), seed, Enabled()))
}

// command is what a shell in the module's root runs to repeat a test.
func command(test string, seed uint64, long bool) string {
	var b strings.Builder
	if long {
		b.WriteString(variable + "=1 ")
	}
	fmt.Fprintf(&b, "%s=%d go test -count=1 ", seedVariable, seed)
	if raced {
		b.WriteString("-race ")
	}
	names := strings.Split(test, "/")
	for i, name := range names {
		names[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	fmt.Fprintf(&b, "-run '%s' %s", strings.Join(names, "/"), directory())
	return b.String()
}

// directory is that of the package under test, seen from its module's root.
func directory() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := here; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			below, _ := filepath.Rel(root, here) // both are absolute
			return "./" + filepath.ToSlash(below)
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}

func fixedSeed(t testing.TB) (seed uint64, given bool) {
	t.Helper()
	text := os.Getenv(seedVariable)
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	return seed, true
}

// duration is how long a campaign continues when soaking.
func duration(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv(timeVariable)
	if text == "" {
		return defaultTime
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", timeVariable, err)
	}
	return d
}
