package network

import (
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

const (
	// window is the buffer of a connection in each direction, in bytes. The tunnel's latency
	// is low: more than two packets would not make it faster.
	window = 128 << 10
	// opening bounds the connections of a namespace that are being opened.
	opening = 64
	nicID   = 1
)

// tunnel is the outer end of a namespace's tunnel, which routes its packets. Its stack is
// created with the first useful packet, since most functions never send one.
type tunnel struct {
	attachment *Attachment
	file       *os.File
	raw        syscall.RawConn
	dispatcher stack.NetworkDispatcher // nil until the stack is made

	mu     sync.Mutex
	stack  *stack.Stack
	closed bool
	flows  map[stack.TransportEndpointID]struct{} // of UDP
}

func newTunnel(a *Attachment, file *os.File) *tunnel {
	return &tunnel{attachment: a, file: file, flows: map[stack.TransportEndpointID]struct{}{}}
}

// read reads the namespace's packets until the tunnel is closed. While there is none it holds
// no buffer.
func (t *tunnel) read() {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return
	}
	t.raw = raw
	for {
		var packet *[bufferSize]byte
		var n int
		var failure error
		err := raw.Read(func(fd uintptr) bool {
			packet = buffers.Get().(*[bufferSize]byte)
			n, failure = unix.Read(int(fd), packet[:])
			if failure == unix.EAGAIN || failure == unix.EINTR {
				buffers.Put(packet)
				return failure == unix.EINTR
			}
			return true
		})
		switch {
		case err != nil:
			return
		case failure == unix.EINTR:
		case failure != nil:
			return // the namespace was removed
		default:
			t.take(packet[:n])
			buffers.Put(packet)
		}
	}
}

// take passes a packet to the stack, if it is TCP or UDP to a unicast address.
func (t *tunnel) take(packet []byte) {
	protocol, ok := worthwhile(packet)
	if !ok || t.dispatcher == nil && !t.open() {
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	t.dispatcher.DeliverNetworkPacket(protocol, p)
	p.DecRef()
}

// worthwhile reports whether a packet is useful. The kernel of a namespace also looks for
// routers and neighbours, which do not exist.
func worthwhile(packet []byte) (tcpip.NetworkProtocolNumber, bool) {
	if len(packet) == 0 {
		return 0, false
	}
	var to netip.Addr
	var transport byte
	protocol := header.IPv4ProtocolNumber
	switch {
	case packet[0]>>4 == 4 && len(packet) >= header.IPv4MinimumSize:
		transport = packet[9]
		to = netip.AddrFrom4([4]byte(packet[16:20]))
	case packet[0]>>4 == 6 && len(packet) >= header.IPv6MinimumSize:
		transport, protocol = packet[6], header.IPv6ProtocolNumber
		to = netip.AddrFrom16([16]byte(packet[24:40]))
	default:
		return 0, false
	}
	switch transport {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_FRAGMENT:
		return protocol, !to.IsMulticast() && !to.IsUnspecified()
	}
	return 0, false
}

// open makes the stack.
func (t *tunnel) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	t.stack = s
	t.configure(s)
	if failure := s.CreateNIC(nicID, &link{tunnel: t}); failure != nil {
		return t.unusable(failure)
	}
	// The stack answers for every address, and as every address.
	for _, set := range []func(tcpip.NICID, bool) tcpip.Error{s.SetPromiscuousMode, s.SetSpoofing} {
		if failure := set(nicID, true); failure != nil {
			return t.unusable(failure)
		}
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nicID}, {Destination: header.IPv6EmptySubnet, NIC: nicID},
	})
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, window, opening, t.connect).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, t.flow).HandlePacket)
	if err := t.serveNames(s); err != nil {
		t.attachment.network.Logger.Error("functions cannot resolve names", "error", err)
	}
	return t.dispatcher != nil
}

func (t *tunnel) unusable(failure tcpip.Error) bool {
	t.attachment.network.Logger.Error("a function's network cannot be served", "error", failure.String())
	t.dispatcher = nil
	return false
}

func (t *tunnel) configure(s *stack.Stack) {
	sack := tcpip.TCPSACKEnabled(true)
	moderate := tcpip.TCPModerateReceiveBufferOption(false)
	recovery := tcpip.TCPRecovery(0) // a tunnel neither loses nor reorders packets
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &recovery,
		&tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: window, Max: window},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: window, Max: window},
	} {
		if failure := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); failure != nil {
			t.attachment.network.Logger.Error("an option of the functions' network cannot be set", "error", failure.String())
		}
	}
}

// close ends the stack. The file is the attachment's to close.
func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.stack != nil {
		t.stack.Destroy()
	}
}

// connect handles a connection that a function opens. It is accepted when the destination has
// accepted.
func (t *tunnel) connect(r *tcp.ForwarderRequest) {
	a := t.attachment
	slot := a.reserve()
	if slot == nil {
		r.Complete(true)
		return
	}
	if !slot.hold(2 * window) {
		slot.release()
		r.Complete(true)
		return
	}
	to := destination(r.ID())
	api, err := a.network.judge(a.ctx, to)
	if err == nil && api {
		if c := t.accept(r); c != nil {
			a.serveAPI(c, slot)
			return
		}
		slot.release()
		return
	}
	defer slot.release()
	if err != nil {
		r.Complete(true)
		return
	}
	outside, err := a.dial("tcp", to)
	if err != nil {
		r.Complete(true)
		return
	}
	inside := t.accept(r)
	if inside == nil {
		_ = outside.Close()
		return
	}
	a.relay(inside, outside.(halfConn))
}

// accept makes the namespace's side of a connection; nil: it was closed.
func (t *tunnel) accept(r *tcp.ForwarderRequest) *gonet.TCPConn {
	var queue waiter.Queue
	endpoint, failure := r.CreateEndpoint(&queue)
	r.Complete(failure != nil)
	if failure != nil {
		return nil
	}
	endpoint.SocketOptions().SetKeepAlive(true)
	return gonet.NewTCPConn(&queue, endpoint)
}

func destination(id stack.TransportEndpointID) netip.AddrPort {
	a, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	return netip.AddrPortFrom(a, id.LocalPort)
}

// link sends the stack's packets.
type link struct{ tunnel *tunnel }

var _ stack.LinkEndpoint = (*link)(nil)

// WritePackets sends packets to the namespace. If its queue is full they are dropped.
func (l *link) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for i, p := range packets.AsSlice() {
		slices := p.AsSlices()
		err := l.tunnel.raw.Write(func(fd uintptr) bool {
			_, _ = unix.Writev(int(fd), slices)
			return true
		})
		if err != nil {
			return i, &tcpip.ErrClosedForSend{}
		}
	}
	return packets.Len(), nil
}

// Attach sets the dispatcher, nil at the end.
func (l *link) Attach(d stack.NetworkDispatcher) {
	if d != nil { // otherwise the reader may still be about to use it
		l.tunnel.dispatcher = d
	}
}

// IsAttached reports whether there is a dispatcher.
func (l *link) IsAttached() bool { return l.tunnel.dispatcher != nil }

// Capabilities disable the check of checksums, which the kernel has just computed.
func (*link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// MTU is the largest packet.
func (*link) MTU() uint32 { return netns.MTU }

// SetMTU does nothing.
func (*link) SetMTU(uint32) {}

// MaxHeaderLength is 0: there is no header below IP's.
func (*link) MaxHeaderLength() uint16 { return 0 }

// LinkAddress is empty.
func (*link) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress does nothing.
func (*link) SetLinkAddress(tcpip.LinkAddress) {}

// Wait has nothing to wait for.
func (*link) Wait() {}

// ARPHardwareType is that of no hardware.
func (*link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader does nothing.
func (*link) AddHeader(*stack.PacketBuffer) {}

// ParseHeader finds nothing to do.
func (*link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close does nothing: the file is the attachment's.
func (*link) Close() {}

// SetOnCloseAction does nothing.
func (*link) SetOnCloseAction(func()) {}
