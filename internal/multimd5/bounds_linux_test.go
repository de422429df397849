package multimd5

import (
	"syscall"
	"testing"
)

// TestBounds: no byte before or behind a text is read. It stands between pages that cannot be.
func TestBounds(t *testing.T) {
	size := syscall.Getpagesize()
	p, err := syscall.Mmap(-1, 0, 3*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(p)
	page := p[size : 2*size]
	copy(page, random)
	for _, guard := range [][]byte{p[:size], p[2*size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	for _, length := range edges {
		if length > size {
			continue
		}
		for _, n := range []int{3, 8, 10, 16, 17} {
			first, last := make([][]byte, n), make([][]byte, n)
			for i := range n {
				first[i], last[i] = page[:length], page[size-length:]
			}
			check(t, first)
			check(t, last)
		}
	}
}
