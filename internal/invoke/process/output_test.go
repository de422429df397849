package process

import (
	"bytes"
	"os"
	"testing"
)

// endless makes a pipe hold as much again whenever a line of it has been read.
type endless struct {
	writer *os.File
	line   []byte
	lines  int
}

func (e *endless) Line(line []byte) {
	e.lines++
	_, _ = e.writer.Write(line)
}

func (e *endless) Stream() (group, name string) { return "", "" }

// What is printed while the output is read does not keep the end of an invocation
// waiting.
func TestDrainEnds(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e := &endless{writer: writer, line: append(bytes.Repeat([]byte("x"), 999), '\n')}
	o := newOutput(reader, e, false)
	for range 40 {
		if _, err := writer.Write(e.line); err != nil {
			t.Fatal(err)
		}
	}
	o.drain()
	if most := 2 * maxPipe / len(e.line); e.lines < 40 || e.lines > most {
		t.Errorf("%d lines", e.lines)
	}
	_ = writer.Close()
	go o.follow()
	o.close()
}
