package multimd5

import (
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

const (
	lanes   = 16 // texts that are worked on at once
	half    = 8  // where there are no more, half of the registers do
	padding = 9  // bytes that follow a text at least: a bit, and its length

	// maxBlocks is how many blocks are computed in one call, which the runtime cannot interrupt.
	maxBlocks = 1024
)

// sideBySide says that the processor has what blocks8 and blocks16 need. Tests change it.
var sideBySide = cpu.X86.HasAVX2

// state is a, b, c and d of each lane.
type state [4][lanes]uint32

// blocks16 continues the state of each lane with its next n blocks, where n is at least 1.
//
//go:noescape
func blocks16(s *state, data *[lanes]*byte, n int)

// blocks8 is blocks16 for the first half of the lanes.
//
//go:noescape
func blocks8(s *state, data *[lanes]*byte, n int)

// lane is a text on its way. It has no pointers, which would have the arrays of sums escape.
type lane struct {
	text    int  // its index
	at, end int  // the blocks to come: in the text, then in the pad
	pad     int  // the index of the pad, which has what follows the text's whole blocks
	padded  bool // the blocks to come are in the pad
}

// sums has a text in each lane until it ends, when the next one takes the lane.
func sums(dst [][md5.Size]byte, texts [][]byte) {
	var (
		s    state
		p    [lanes][2 * md5.BlockSize]byte
		all  [lanes]lane
		data [lanes]*byte
	)
	next, used := 0, 0
	for ; next < len(texts) && used < lanes; next, used = next+1, used+1 {
		s.start(used)
		all[used] = lane{text: next, end: whole(texts[next]), pad: used}
	}
	for used > 0 {
		n := maxBlocks
		for i := range all[:used] {
			l := &all[i]
			if !l.padded && l.at == l.end {
				l.at, l.end, l.padded = 0, pad(&p[l.pad], texts[l.text]), true
			}
			if l.padded {
				data[i] = &p[l.pad][l.at]
			} else {
				data[i] = &texts[l.text][l.at]
			}
			n = min(n, (l.end-l.at)/md5.BlockSize)
		}
		for i := used; i < lanes; i++ {
			data[i] = data[0] // lanes without a text read what another does
		}
		if used <= half {
			blocks8(&s, &data, n)
		} else {
			blocks16(&s, &data, n)
		}
		for i := 0; i < used; {
			l := &all[i]
			l.at += n * md5.BlockSize
			switch {
			case !l.padded || l.at < l.end:
				i++
			case next < len(texts):
				dst[l.text] = s.sum(i)
				s.start(i)
				*l = lane{text: next, end: whole(texts[next]), pad: l.pad}
				next++
				i++
			default:
				dst[l.text] = s.sum(i)
				used-- // the last lane, whose turn was yet to come, takes this place
				*l = all[used]
				s.move(i, used)
			}
		}
	}
}

// whole is the length of a text's whole blocks.
func whole(text []byte) int { return len(text) &^ (md5.BlockSize - 1) }

// pad makes the blocks that follow a text's whole ones, and returns their length.
func pad(p *[2 * md5.BlockSize]byte, text []byte) int {
	end := md5.BlockSize
	n := copy(p[:], text[whole(text):])
	if n+padding > end {
		end *= 2
	}
	clear(p[n:end])
	p[n] = 0x80
	binary.LittleEndian.PutUint64(p[end-8:], uint64(len(text))<<3)
	return end
}

func (s *state) start(at int) {
	s[0][at], s[1][at], s[2][at], s[3][at] = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476
}

func (s *state) move(to, from int) {
	for i := range s {
		s[i][to] = s[i][from]
	}
}

func (s *state) sum(at int) (sum [md5.Size]byte) {
	for i := range s {
		binary.LittleEndian.PutUint32(sum[4*i:], s[i][at])
	}
	return sum
}
