package multimd5

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// edges are lengths around which the padding changes, or the number of blocks.
var edges = []int{0, 1, 54, 55, 56, 57, 62, 63, 64, 65, 118, 119, 120, 121, 127, 128, 129, 1023, 1024, 4096}

// random has bytes of which no two parts are alike.
var random = func() []byte {
	p := make([]byte, 1<<20+200)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range p {
		p[i] = byte(source.Uint32())
	}
	return p
}()

// check holds the digests against crypto/md5, however they are computed.
func check(t interface {
	Helper()
	Errorf(format string, args ...any)
}, texts [][]byte,
) {
	t.Helper()
	before := make([][]byte, len(texts))
	for i, text := range texts {
		before[i] = slices.Clone(text)
	}
	dst := make([][md5.Size]byte, len(texts)+1)
	untouched := [md5.Size]byte{1, 2, 3}
	compare := func(how string) {
		t.Helper()
		for i, text := range texts {
			if dst[i] != md5.Sum(before[i]) {
				t.Errorf("%s: the digest of text %d of %d, of %d bytes, is %x, want %x", how, i, len(texts), len(text), dst[i], md5.Sum(text))
			}
			if !slices.Equal(text, before[i]) {
				t.Errorf("%s: text %d was changed", how, i)
			}
		}
		if dst[len(texts)] != untouched {
			t.Errorf("%s: there is a digest behind the last one", how)
		}
		clear(dst)
		dst[len(texts)] = untouched
	}
	dst[len(texts)] = untouched
	Sums(dst, texts)
	compare("Sums")
	if sideBySide {
		sums(dst[:len(texts)], texts)
		compare("side by side")
	}
	restore := oneByOne()
	Sums(dst, texts)
	restore()
	compare("one by one")
}

func TestSums(t *testing.T) {
	t.Run("RFC 1321", func(t *testing.T) {
		texts := []string{"", "a", "abc", "message digest", "abcdefghijklmnopqrstuvwxyz"}
		want := []string{
			"d41d8cd98f00b204e9800998ecf8427e", "0cc175b9c0f1b6a831c399e269772661", "900150983cd24fb0d6963f7d28e17f72",
			"f96b697d7cb7938d525a2f31aaf161d0", "c3fcd3d76192e4007dfb496cca67e13b",
		}
		in := make([][]byte, len(texts))
		for i, text := range texts {
			in[i] = []byte(text)
		}
		dst := make([][md5.Size]byte, len(texts))
		Sums(dst, in)
		for i := range want {
			if got := fmt.Sprintf("%x", dst[i]); got != want[i] {
				t.Errorf("%q: %s, want %s", texts[i], got, want[i])
			}
		}
	})
	t.Run("nothing", func(t *testing.T) {
		check(t, nil)
		check(t, make([][]byte, 5)) // nil
		check(t, [][]byte{{}, nil, {}, nil})
	})
	t.Run("alike", func(t *testing.T) {
		for _, length := range edges {
			for n := range 36 {
				texts := make([][]byte, n)
				for i := range texts {
					texts[i] = random[i*7:][:length]
				}
				check(t, texts)
			}
		}
	})
	t.Run("edges", func(t *testing.T) {
		var texts [][]byte
		for i, length := range edges {
			texts = append(texts, random[i:][:length])
			check(t, texts)
		}
		slices.Reverse(texts)
		for len(texts) > 0 {
			check(t, texts)
			texts = texts[1:]
		}
	})
	t.Run("large", func(t *testing.T) {
		texts := [][]byte{random[:1<<20], random[1:][:1<<20+57], random[2:][:1<<20-1], nil, random[:64<<10], random[:64<<10+1]}
		check(t, texts)
		check(t, texts[1:4])
	})
}

// TestSumsOfAny: any number of texts, of any length.
func TestSumsOfAny(t *testing.T) {
	length := rapid.OneOf(rapid.SampledFrom(edges), rapid.IntRange(0, 300), rapid.IntRange(0, 20_000))
	rapid.Check(t, func(t *rapid.T) {
		texts := make([][]byte, rapid.IntRange(0, 50).Draw(t, "texts"))
		for i := range texts {
			n := length.Draw(t, "length")
			at := rapid.IntRange(0, 100).Draw(t, "at")
			texts[i] = random[at:][:n:n]
		}
		check(t, texts)
	})
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("the texts follow each other"), []byte{3, 0, 5, 200})
	f.Add(random[:2000], []byte{64, 64, 64, 55, 56, 119, 120, 255, 255, 255})
	f.Fuzz(func(t *testing.T, p, lengths []byte) {
		var texts [][]byte
		for _, n := range lengths {
			n := min(int(n), len(p))
			texts = append(texts, p[:n:n])
			p = p[n:]
		}
		check(t, append(texts, p))
	})
}

// TestSmallStack: a goroutine's stack may grow and move at any point.
func TestSmallStack(t *testing.T) {
	texts := make([][]byte, 10)
	for i := range texts {
		texts[i] = random[i:][:100*i+50]
	}
	for depth := range 100 {
		done := make(chan bool)
		go func() {
			var dst [10][md5.Size]byte
			deeper(depth, func() { Sums(dst[:], texts) })
			for i, text := range texts {
				if dst[i] != md5.Sum(text) {
					t.Errorf("depth %d: the digest of text %d is %x", depth, i, dst[i])
				}
			}
			close(done)
		}()
		<-done
	}
}

//go:noinline
func deeper(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deeper(n-1, f)
}

// TestWorthwhile: not for a text that all the others together are short beside.
func TestWorthwhile(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    bool
	}{
		{nil, false},
		{[]int{0, 0, 0}, false},
		{[]int{1000}, false},
		{[]int{1000, 1000}, true},
		{[]int{1000, 200}, false},
		{[]int{100, 1000, 100, 100}, true},
		{[]int{65536, 100, 100, 100, 100, 100, 100, 100, 100, 100}, false},
	} {
		texts := make([][]byte, len(c.lengths))
		for i, n := range c.lengths {
			texts[i] = random[:n]
		}
		if got := worthwhile(texts); got != c.want {
			t.Errorf("%v: %v", c.lengths, got)
		}
	}
}

func TestAllocations(t *testing.T) {
	texts := make([][]byte, 20)
	for i := range texts {
		texts[i] = random[i:][:1000]
	}
	dst := make([][md5.Size]byte, len(texts))
	if !worthwhile(texts) {
		t.Fatal("they are computed one after the other")
	}
	if n := testing.AllocsPerRun(100, func() { Sums(dst, texts) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSums(b *testing.B) {
	type size struct {
		name string
		of   func(i int) int
	}
	alike := func(n int) func(int) int { return func(int) int { return n } }
	for _, s := range []size{
		{"100B", alike(100)},
		{"1KiB", alike(1 << 10)},
		{"10KiB", alike(10 << 10)},
		{"64KiB", alike(64 << 10)},
		{"mixed", func(i int) int { return []int{100, 1 << 10, 300, 3000, 64, 10 << 10, 700, 20, 1500, 5000}[i] }},
		{"oneLong", func(i int) int { return []int{64 << 10, 100, 100, 100, 100, 100, 100, 100, 100, 100}[i] }},
	} {
		for _, n := range []int{1, 2, 3, 5, 8, 10} {
			texts, total := make([][]byte, n), 0
			for i := range texts {
				texts[i] = random[i*(65<<10+17):][:s.of(i)]
				total += len(texts[i])
			}
			dst := make([][md5.Size]byte, n)
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				b.Run("md5", func(b *testing.B) {
					b.SetBytes(int64(total))
					for b.Loop() {
						for i := range texts {
							dst[i] = md5.Sum(texts[i])
						}
					}
				})
				b.Run("Sums", func(b *testing.B) {
					b.SetBytes(int64(total))
					for b.Loop() {
						Sums(dst, texts)
					}
				})
			})
		}
	}
}
