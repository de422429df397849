package process

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"

	"godwit.dev/godwit/internal/invoke"
)

// maxLine bounds a log event, in bytes: longer lines are cut.
const maxLine = 256 << 10

// maxPipe is the largest capacity of a pipe, in bytes, if the process enlarged it.
const maxPipe = 1 << 20

// output reads a process's output and splits it into lines. It reads as soon as there is
// data; drain reads all current data.
type output struct {
	file   *os.File
	to     invoke.Output
	framed bool // events of several lines are framed

	mu     sync.Mutex // held while reading: lines keep their order
	buffer []byte
	part   []byte // of a line that has not ended
	within bool   // it continues a frame that was too long for one event
	ended  chan struct{}
	once   sync.Once
}

func newOutput(file *os.File, to invoke.Output, framed bool) *output {
	return &output{file: file, to: to, framed: framed, ended: make(chan struct{})}
}

// Our scripts print an event of the log as one line that begins with frame, even where the
// function's own output has not ended its line, and has lineBreak in place of newlines. So it
// keeps its order with other output.
var (
	frame     = []byte("\x1e\x1f")
	lineBreak = byte('\x1f')
)

// unframe restores the newlines of a framed line.
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

// follow reads until all processes have closed the pipe.
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

// drain reads the current output, and ends the line. Output that continues meanwhile does not
// delay it.
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

// read reads available data, up to the buffer's size. more says that there may be more, ended
// that there will be none.
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

// cut emits the lines that b completes.
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
			if begins := bytes.Index(line, frame); begins > 0 && !o.within {
				o.to.Line(line[:begins:begins])
				line = line[begins:]
			}
			line = o.unframe(line)
		}
		o.to.Line(line)
		o.part = o.part[:0]
		if cap(o.part) > 64<<10 {
			o.part = nil
		}
	}
}

// close waits until all output was read.
func (o *output) close() {
	o.once.Do(func() {
		<-o.ended
		_ = o.file.Close()
	})
}
