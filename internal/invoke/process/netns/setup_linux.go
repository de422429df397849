package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	tunnelDevice = "/dev/net/tun"
	tunnelName   = "godwit"
	backlog      = 128
	// maxSockets is the kernel's bound on the descriptors of a message.
	maxSockets = 253
)

// message goes with the descriptors of the listeners, and that of the tunnel behind
// them, if it has one.
type message struct {
	Tunnel  bool   `json:"tunnel,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// SetUp sets up the namespace of the calling process, which must have made it, and sends the
// sockets to Receive. Without a tunnel it succeeds, and Receive reports the problem.
func SetUp(plan Plan, socket *os.File) error {
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if err := up("lo"); err != nil {
		return fmt.Errorf("setting up the sandbox's network: %w", err)
	}
	for _, port := range plan.Listen {
		fd, err := listen(port)
		if err != nil {
			return fmt.Errorf("listening at port %d of the sandbox: %w", port.Number, err)
		}
		fds = append(fds, fd)
	}
	var m message
	if plan.Tunnel {
		if fd, err := tunnel(); err != nil {
			m.Problem = err.Error()
		} else {
			fds, m.Tunnel = append(fds, fd), true
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(int(socket.Fd()), text, unix.UnixRights(fds...), nil, 0); err != nil {
		return fmt.Errorf("passing on the sandbox's sockets: %w", err)
	}
	return nil
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// listen listens at every address of both versions, where the kernel has the sixth.
func listen(port Port) (fd int, err error) {
	addresses := []unix.Sockaddr{&unix.SockaddrInet6{Port: int(port.Number)}, &unix.SockaddrInet4{Port: int(port.Number)}}
	if port.Loopback {
		addresses = []unix.Sockaddr{&unix.SockaddrInet4{Port: int(port.Number), Addr: [4]byte{127, 0, 0, 1}}}
	}
	for _, address := range addresses {
		if fd, err = listenAt(address); err == nil {
			return fd, nil
		}
	}
	return -1, err
}

func listenAt(address unix.Sockaddr) (int, error) {
	_, v6 := address.(*unix.SockaddrInet6)
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if v6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, address)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// tunnel makes the device that all routes lead to.
func tunnel() (fd int, err error) {
	fd, err = unix.Open(tunnelDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", tunnelDevice, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
			fd = -1
		}
	}()
	request, err := unix.NewIfreq(tunnelName)
	if err != nil {
		return fd, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fd, fmt.Errorf("making a tunnel with %s: %w", tunnelDevice, err)
	}
	link, err := netlink.LinkByName(tunnelName)
	if err != nil {
		return fd, fmt.Errorf("finding the tunnel: %w", err)
	}
	if err := errors.Join(netlink.LinkSetMTU(link, MTU), netlink.LinkSetUp(link)); err != nil {
		return fd, fmt.Errorf("setting up the tunnel: %w", err)
	}
	if err := route(link, Inside); err != nil {
		return fd, fmt.Errorf("leading to the tunnel: %w", err)
	}
	_ = route(link, Inside6) // a kernel without it has no such connections
	return fd, nil
}

// route gives the link an address and has all else lead there.
func route(link netlink.Link, own netip.Prefix) error {
	bits := own.Addr().BitLen()
	address := &net.IPNet{IP: own.Addr().AsSlice(), Mask: net.CIDRMask(own.Bits(), bits)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address, Flags: unix.IFA_F_NODAD}); err != nil {
		return err
	}
	all := &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: all})
}

// Pair makes the socket that SetUp sends through, and the one that Receive reads.
func Pair() (inside, outside *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for the sandbox: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "inside"), os.NewFile(uintptr(fds[1]), "outside"), nil
}

// Receive waits for what SetUp sends and closes the socket. The error is io.EOF if
// the sandbox ended before.
func Receive(socket *os.File, plan Plan) (*Sockets, error) {
	conn, err := net.FileConn(socket)
	_ = socket.Close()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	text, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*maxSockets))
	n, nc, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(text, control)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	fds, err := descriptors(control[:nc])
	if err != nil {
		return nil, err
	}
	s := &Sockets{}
	for i, fd := range fds {
		if i == len(plan.Listen) {
			s.Tunnel = os.NewFile(uintptr(fd), tunnelName) // it does not block, so that no thread waits for it
			continue
		}
		f := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			s.Close()
			return nil, err
		}
		s.Listeners = append(s.Listeners, l)
	}
	var m message
	if err := json.Unmarshal(text[:n], &m); err != nil || len(s.Listeners) != len(plan.Listen) || m.Tunnel != (s.Tunnel != nil) {
		s.Close()
		return nil, errors.New("the sandbox passed on other sockets than it should")
	}
	s.Problem = m.Problem
	return s, nil
}

func descriptors(control []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		all = append(all, fds...)
	}
	return all, nil
}
