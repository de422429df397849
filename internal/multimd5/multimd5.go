// Package multimd5 computes the MD5 digests of several independent texts side by side
// (multi-buffer hashing), at several times the rate of one after the other where the processor
// has AVX2. SQS answers a send with the digest of each body.
package multimd5

import "crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection

//go:generate go run ./generate

// Sums sets dst to the digests of the texts, of which it must have as many.
func Sums(dst [][md5.Size]byte, texts [][]byte) {
	dst = dst[:len(texts)]
	if sideBySide && worthwhile(texts) {
		sums(dst, texts)
		return
	}
	for i, text := range texts {
		dst[i] = md5.Sum(text) //nolint:gosec // see the import
	}
}

// atOnce is how many texts a Batch has at most: as many as there are lanes.
const atOnce = 16

// Batch collects texts, and computes their digests side by side. The zero Batch is empty.
type Batch struct {
	texts [atOnce][]byte
	sums  [atOnce]*[md5.Size]byte
	n     int
}

// Add sets sum to the digest of a text, at the next Flush at the latest. Until then the text must not change.
func (b *Batch) Add(sum *[md5.Size]byte, text []byte) {
	if b.n == atOnce {
		b.Flush()
	}
	b.texts[b.n], b.sums[b.n] = text, sum
	b.n++
}

// Flush sets the digests of what was added.
func (b *Batch) Flush() {
	var sums [atOnce][md5.Size]byte
	Sums(sums[:b.n], b.texts[:b.n])
	for i, sum := range b.sums[:b.n] {
		*sum = sums[i]
	}
	b.n = 0
}

// worthwhile reports that the texts take less time side by side, which is at least that of the
// longest, and a quarter more than it would take by itself.
func worthwhile(texts [][]byte) bool {
	total, longest := 0, 0
	for _, text := range texts {
		total, longest = total+len(text), max(longest, len(text))
	}
	return longest+longest/4 < total
}
