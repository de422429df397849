package http1

// framing prevents request smuggling on connections that net/http serves: it follows the framing
// of requests to find a head with both Content-Length and Transfer-Encoding. A proxy and a server
// may disagree on where such a request ends. net/http ignores the Content-Length; framing
// therefore corrupts the head, so that net/http refuses it. After input that net/http refuses
// anyway, framing is lost, and looks at nothing more.
//
// It agrees with net/http on where requests end, which a fuzz test checks.
type framing struct {
	at      place
	line    int   // bytes of the line so far
	field   field // whose line it is
	name    [len("transfer-encoding")]byte
	proto   [len("HTTP/1.1")]byte // the last bytes of the request line
	old     bool                  // before HTTP/1.1
	encoded bool                  // the head has Transfer-Encoding
	sized   bool                  // it has Content-Length
	digits  int                   // of a number that is read
	left    uint64                // of the body or a chunk, in bytes; or the number that is read
	ended   bool                  // the number is over
}

// place is where in a request a byte stands.
type place uint8

const (
	inRequestLine place = iota
	inName              // of a field, or at the beginning of its line
	inValue
	inBody      // of a known length
	inChunkSize // the line before a chunk
	inChunk
	inChunkEnd // the line break behind it
	inTrailer
	nowhere
)

type field uint8

const (
	another field = iota
	contentLength
	transferEncoding
)

func (f *framing) lost() bool { return f.at == nowhere }

// withinBody reports that more of a body follows.
func (f *framing) withinBody() bool { return f.at >= inBody && f.at < nowhere }

// follow goes through what was read, in which it may change a byte.
func (f *framing) follow(b []byte) {
	for i := 0; i < len(b); i++ {
		switch f.at {
		case inBody, inChunk:
			n := min(f.left, uint64(len(b)-i))
			f.left -= n
			i += int(n) - 1
			if f.left == 0 {
				f.bodyEnd()
			}
		case inRequestLine:
			f.requestLine(b[i])
		case inName:
			if f.nameByte(b[i]) {
				b[i] = 0 // no field has such a name
				f.at = nowhere
			}
		case inValue:
			f.valueByte(b[i])
		case inChunkSize:
			f.chunkSize(b[i])
		case inChunkEnd:
			f.chunkEnd(b[i])
		case inTrailer:
			f.trailer(b[i])
		case nowhere:
		}
		if f.at == nowhere {
			clear(b[i+1:])
			return
		}
	}
}

func (f *framing) start() { *f = framing{} }

func (f *framing) requestLine(c byte) {
	if f.line == 0 && (c == '\r' || c == '\n') {
		return // net/http skips some behind a POST, and else refuses them
	}
	f.line++
	if c != '\n' {
		if c != '\r' {
			copy(f.proto[:], f.proto[1:])
			f.proto[len(f.proto)-1] = c
		}
		return
	}
	f.old = string(f.proto[:len("HTTP/1.")]) != "HTTP/1." || f.proto[len(f.proto)-1] == '0'
	f.at, f.line = inName, 0
}

// nameByte takes a byte of a field's name, and reports whether it must be refused.
func (f *framing) nameByte(c byte) (refuse bool) {
	switch {
	case c == '\n':
		if f.line == 0 || f.line == 1 && f.name[0] == '\r' {
			f.headEnd()
			return false
		}
		f.at = nowhere // no colon
		return false
	case c == ':':
		return f.nameEnd()
	case f.line == 0 && (c == ' ' || c == '\t'):
		// It continues with the value of the line before.
		f.at, f.ended = inValue, f.digits > 0
		return false
	}
	if f.line < len(f.name) {
		f.name[f.line] = c
	}
	f.line++
	return false
}

func (f *framing) nameEnd() (refuse bool) {
	f.field = another
	switch {
	case f.is("content-length"):
		f.field, refuse = contentLength, f.encoded
		f.sized, f.left, f.digits, f.ended = true, 0, 0, false
	case f.is("transfer-encoding"):
		f.field, refuse = transferEncoding, f.sized
		f.encoded = true
	}
	f.at = inValue
	return refuse
}

func (f *framing) is(name string) bool {
	if f.line != len(name) {
		return false
	}
	for i := range len(name) {
		c := f.name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

func (f *framing) valueByte(c byte) {
	switch {
	case c == '\n':
		f.at, f.line = inName, 0
	case f.field != contentLength || c == '\r':
	case c == ' ' || c == '\t':
		f.ended = f.digits > 0
	default:
		f.number(c, 10)
	}
}

// number takes a digit; what is none, or one too many, net/http refuses.
func (f *framing) number(c byte, base uint64) {
	var digit uint64
	switch {
	case '0' <= c && c <= '9':
		digit = uint64(c - '0')
	case base == 16 && 'a' <= c && c <= 'f':
		digit = uint64(c-'a') + 10
	case base == 16 && 'A' <= c && c <= 'F':
		digit = uint64(c-'A') + 10
	default:
		f.at = nowhere
		return
	}
	if f.left = f.left*base + digit; f.ended || f.left >= 1<<56 {
		f.at = nowhere
		return
	}
	f.digits++
}

func (f *framing) headEnd() {
	switch {
	case f.encoded && !f.old: // before HTTP/1.1 it means nothing
		f.left, f.digits, f.ended = 0, 0, false
		f.at = inChunkSize
	case f.left > 0:
		f.at = inBody
	default:
		f.start()
	}
}

func (f *framing) bodyEnd() {
	if f.at == inBody {
		f.start()
		return
	}
	f.at, f.line = inChunkEnd, 0
}

// chunkSize takes a byte of the line before a chunk: a number, maybe blanks, maybe an
// extension behind a semicolon.
func (f *framing) chunkSize(c byte) {
	switch {
	case c == '\n' && f.digits == 0:
		f.at = nowhere
	case c == '\n' && f.left == 0:
		f.at, f.line = inTrailer, 0
	case c == '\n':
		f.at = inChunk
	case c == ';' || c == '\r' || c == ' ' || c == '\t':
		f.ended = true
	case f.ended: // an extension
	default:
		f.number(c, 16)
	}
}

func (f *framing) chunkEnd(c byte) {
	switch {
	case c == '\r' && f.line == 0:
		f.line = 1
	case c == '\n':
		f.left, f.digits, f.ended = 0, 0, false
		f.at = inChunkSize
	default:
		f.at = nowhere
	}
}

// trailer takes a byte of the fields behind the last chunk, up to an empty line.
func (f *framing) trailer(c byte) {
	switch {
	case c == '\n' && f.line == 0:
		f.start()
	case c == '\n':
		f.line = 0
	case c == '\r' && f.line == 0: // of an empty line
	default:
		f.line++
	}
}
