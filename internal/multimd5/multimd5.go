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

// worthwhile reports that the texts take less time side by side, which is at least that of the
// longest, and a quarter more than it would take by itself.
func worthwhile(texts [][]byte) bool {
	total, longest := 0, 0
	for _, text := range texts {
		total, longest = total+len(text), max(longest, len(text))
	}
	return longest+longest/4 < total
}
