package smpp

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// An SMSC that says nothing is asked whether it is there, and left when it does not answer.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := newSession(here, 1, func(delivered) {})
		go s.run(bufio.NewReader(here))
		in := bufio.NewReader(there)
		began := clock.System.Now()
		for range 3 { // it is there
			p, err := readPDU(in)
			if err != nil || p.command != enquireLink {
				t.Fatalf("%+v %v", p, err)
			}
			back := pdu{command: enquireLink | answer, sequence: p.sequence}
			if _, err := there.Write(back.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readPDU(in); err != nil { // and then it is not
			t.Fatal(err)
		}
		<-s.ended
		if took := clock.System.Now().Sub(began); took > 5*time.Minute {
			t.Errorf("it took %s", took)
		}
		if _, unknown, err := s.submit(context.Background(), nil); err == nil || unknown {
			t.Error("a session that has ended takes messages")
		}
	})
}

func FuzzReadDelivered(f *testing.F) {
	f.Add([]byte("\x00\x01\x014917012345678\x00\x00\x00123\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04STOP"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if d, ok := readDelivered(body); ok && len(d.text) > 4*len(body) {
			t.Errorf("%q", d.text)
		}
		receiptOf(delivered{text: string(body)})
		option(body, receiptedMessageID)
	})
}
