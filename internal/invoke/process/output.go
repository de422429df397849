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

// output reads what a process prints and cuts it into lines. It reads as soon
// as something is there; drain reads what is there now.
type output struct {
	file *os.File
	to   invoke.Output

	mu     sync.Mutex // held while reading: lines keep their order
	buffer []byte
	part   []byte // of a line that has not ended
	ended  chan struct{}
	once   sync.Once
}

func newOutput(file *os.File, to invoke.Output) *output {
	return &output{file: file, to: to, ended: make(chan struct{})}
}

// follow reads until no process can print any more.
func (o *output) follow() {
	defer close(o.ended)
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { return o.read(int(fd)) })
}

// drain reads what has been printed so far, and ends the line.
func (o *output) drain() {
	if raw, err := o.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { o.read(int(fd)) })
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

// read reads until nothing is there; it reports whether nothing will be.
func (o *output) read(fd int) (end bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer == nil {
		o.buffer = make([]byte, 32<<10)
	}
	for {
		n, err := syscall.Read(fd, o.buffer)
		switch {
		case n > 0:
			o.cut(o.buffer[:n])
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false
		default:
			o.flush()
			return true
		}
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
		if room := maxLine - len(o.part); end > room {
			end, whole = room, true
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
		o.to.Line(append([]byte(nil), o.part...))
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
