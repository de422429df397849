package network

import (
	"net"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// flowTime is the idle timeout of a pair of addresses that exchange datagrams.
	flowTime = time.Minute
	// maxFlows bounds these pairs in a namespace.
	maxFlows = 256
)

// flow handles the first datagram between two addresses. Datagrams during its setup are
// dropped, and so are those that the policy forbids.
func (t *tunnel) flow(r *udp.ForwarderRequest) (handled bool) {
	id := r.ID()
	t.mu.Lock()
	_, known := t.flows[id]
	full := len(t.flows) >= maxFlows
	if !known && !full {
		t.flows[id] = struct{}{}
	}
	t.mu.Unlock()
	if known {
		return true
	}
	if full {
		t.attachment.network.refused[Exhausted].Add(1)
		return true
	}
	go func() {
		defer func() {
			t.mu.Lock()
			delete(t.flows, id)
			t.mu.Unlock()
		}()
		t.exchange(r)
	}()
	return true
}

// exchange copies datagrams until the idle timeout.
func (t *tunnel) exchange(r *udp.ForwarderRequest) {
	a := t.attachment
	slot := a.reserve()
	if slot == nil {
		return
	}
	defer slot.release()
	to := destination(r.ID())
	if api, err := a.network.judge(a.ctx, to); err != nil || api {
		return
	}
	outside, err := a.dial("udp", to)
	if err != nil {
		return
	}
	defer func() { _ = outside.Close() }()
	var queue waiter.Queue
	endpoint, failure := r.CreateEndpoint(&queue)
	if failure != nil {
		return
	}
	inside := gonet.NewUDPConn(&queue, endpoint)
	defer func() { _ = inside.Close() }()
	if !a.keep(inside) {
		return
	}
	defer a.forget(inside)
	var moved atomic.Int64
	watch := whileIdle(flowTime, &moved, func() { _, _ = inside.Close(), outside.Close() })
	defer watch.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		datagrams(inside, outside, &moved)
		_ = inside.Close()
	}()
	datagrams(outside, inside, &moved)
	_ = outside.Close()
	<-done
}

// datagrams copies one direction until reading fails. If nobody listens at the destination,
// the next write or read fails; later ones may succeed.
func datagrams(to, from net.Conn, moved *atomic.Int64) {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if err != nil {
			return
		}
		moved.Add(1)
		_, _ = to.Write(buffer[:n])
	}
}
