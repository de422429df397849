package httpsender

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/publicnet"
)

// nameserver is a resolver that knows one address for every name.
type nameserver struct {
	mu      sync.Mutex
	address netip.Addr
	asked   int
}

func (n *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.answer(server)
		return client, nil
	}}
}

// answer speaks DNS over a stream: each message behind its length in 2 bytes.
func (n *nameserver) answer(c net.Conn) {
	defer c.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		m := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, m); err != nil {
			return
		}
		end := 12
		for m[end] != 0 {
			end += int(m[end]) + 1
		}
		end += 5 // the root, the type and the class
		kind := binary.BigEndian.Uint16(m[end-4:])
		n.mu.Lock()
		n.asked++
		address := n.address
		n.mu.Unlock()
		data := address.AsSlice()
		fits := kind == 1 && address.Is4() || kind == 28 && address.Is6()
		reply := append([]byte{m[0], m[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, m[12:end]...)
		if fits {
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
			reply = append(reply, data...)
		}
		binary.BigEndian.PutUint16(length[:], uint16(len(reply)))
		if _, err := c.Write(append(length[:], reply...)); err != nil {
			return
		}
	}
}

// TestNamesOfPrivateAddresses: a name that a check once found harmless may lead
// elsewhere by the time of the dial. What counts is the address that is dialled.
func TestNamesOfPrivateAddresses(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	names := &nameserver{}
	s := newSender(t, Options{resolver: names.resolver()})
	for _, address := range []string{
		"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
	} {
		names.mu.Lock()
		names.address = netip.MustParseAddr(address)
		names.mu.Unlock()
		got := send(t, s, "http://rebound.example.com:"+port, nil)
		if got.Class != deliver.ClientError || got.Detail != publicnet.ErrForbidden.Error() {
			t.Errorf("%s: %+v", address, got)
		}
	}
	names.address = netip.MustParseAddr("127.0.0.1")
	allowed := newSender(t, Options{AllowPrivate: true, resolver: names.resolver()})
	if got := send(t, allowed, "http://rebound.example.com:"+port, nil); got.Class != deliver.Success || requests.Load() != 1 {
		t.Errorf("allowed: %+v after %d requests; the others must not have made any", got, requests.Load())
	}
	own, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	itself := newSender(t, Options{AllowPrivate: true, Own: publicnet.Ports{Machine: []uint16{uint16(own)}}, resolver: names.resolver()})
	if got := send(t, itself, "http://rebound.example.com:"+port, nil); got.Class != deliver.ClientError || got.Detail != publicnet.ErrOwn.Error() || requests.Load() != 1 {
		t.Errorf("to the server itself: %+v after %d requests", got, requests.Load())
	}
	if names.asked == 0 {
		t.Error("nobody asked for the name")
	}
}
