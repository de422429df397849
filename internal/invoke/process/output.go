package process

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"

	"godwit.dev/godwit/internal/invoke"
)

// maxLine is the size of a log event, in bytes: a longer line is cut.
const maxLine = 256 << 10

// maxPipe is the most that a pipe holds, in bytes, if the process made it larger.
const maxPipe = 1 << 20

// output reads what a process prints and cuts it into lines. It reads as soon
// as something is there; drain reads what is there now.
type output struct {
	file   *os.File
	to     invoke.Output
	framed bool // events of several lines come in frames

	mu     sync.Mutex // held while reading: lines keep their order
	buffer []byte
	part   []byte // of a line that has not ended
	within bool   // it continues with a frame that was too long for one event
	ended  chan struct{}
	once   sync.Once
}

func newOutput(file *os.File, to invoke.Output, framed bool) *output {
	return &output{file: file, to: to, framed: framed, ended: make(chan struct{})}
}

// What our scripts print as one event of several lines is a line that begins with
// frame and has lineBreak in the place of newlines. In the pipe it so keeps its place
// among what else is printed.
var (
	frame     = []byte("\x1e\x1f")
	lineBreak = byte('\x1f')
)

// unframe gives a line of several ones its newlines.
func (o *output) unframe(line []byte) []byte {
	rest, begins := bytes.CutPrefix(line, frame)
	if !begins && !o.within {
		return line
	}
	o.within = line[len(line)-1] != '\n'
	for i, c := range rest {
		if c == lineBreak {
			rest[i] = '\n'
		}
	}
	return rest
}

// follow reads until no process can print any more.
func (o *output) follow() {
	defer close(o.ended)
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (ended bool) {
		for more := true; more; {
			_, more, ended = o.read(int(fd))
		}
		return ended
	})
}

// drain reads what has been printed so far, and ends the line. What continues printing
// meanwhile does not hold it up.
func (o *output) drain() {
	if raw, err := o.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			for left, more := maxPipe, true; more && left > 0; {
				var n int
				n, more, _ = o.read(int(fd))
				left -= n
			}
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

// read reads what there is, up to the buffer's size. More says that there may be more
// now, ended that there will be none.
func (o *output) read(fd int) (n int, more, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer == nil {
		o.buffer = make([]byte, 32<<10)
	}
	n, err := syscall.Read(fd, o.buffer)
	switch {
	case n > 0:
		o.cut(o.buffer[:n])
		return n, true, false
	case errors.Is(err, syscall.EINTR):
		return 0, true, false
	case errors.Is(err, syscall.EAGAIN):
		return 0, false, false
	default:
		o.flush()
		return 0, false, true
	}
}

// cut hands over the lines that b completes.
func (o *output) cut(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(b)
		}
		if left := maxLine - len(o.part); end > left {
			end, whole = left, true
		}
		o.part = append(o.part, b[:end]...)
		b = b[end:]
		if whole {
			o.flush()
		}
	}
}

func (o *output) flush() {
	if len(o.part) > 0 {
		line := append([]byte(nil), o.part...)
		if o.framed {
			line = o.unframe(line)
		}
		o.to.Line(line)
		o.part = o.part[:0]
		if cap(o.part) > 64<<10 {
			o.part = nil
		}
	}
}

// close waits until everything is read that was printed.
func (o *output) close() {
	o.once.Do(func() {
		<-o.ended
		_ = o.file.Close()
	})
}
