package sandbox

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Connected reports whether a process of the sandbox has the other end of a loopback
// connection. user is the program's user; 0: the caller's. If it has a user of its own, the
// socket's owner decides. Otherwise the socket must be open in one of the sandbox's
// processes.
func (p *Process) Connected(c net.Conn, user int) bool {
	peer, ok := c.RemoteAddr().(*net.TCPAddr)
	own, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return false
	}
	socket, owner, ok := findSocket(peer.AddrPort(), own.AddrPort())
	switch {
	case !ok:
		return false
	case user != 0:
		return owner == user
	}
	want := fmt.Sprintf("socket:[%d]", socket)
	for _, pid := range Descendants(p.cmd.Process.Pid) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if link, err := os.Readlink(file); err == nil && link == want {
				return true
			}
		}
	}
	return false
}

// findSocket finds a socket of TCP of this machine by its two addresses.
func findSocket(local, remote netip.AddrPort) (inode uint64, user int, ok bool) {
	for table, six := range map[string]bool{"/proc/self/net/tcp": false, "/proc/self/net/tcp6": true} {
		from, to := tableAddress(local, six), tableAddress(remote, six)
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			// sl local remote st tx:rx tr:when retrnsmt uid timeout inode …
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[1] != from || fields[2] != to {
				continue
			}
			inode, err = strconv.ParseUint(fields[9], 10, 64)
			user, _ = strconv.Atoi(fields[7])
			ok = err == nil && inode != 0
			break
		}
		_ = f.Close()
		if ok {
			return inode, user, true
		}
	}
	return 0, 0, false
}

// tableAddress is an address in the form of the kernel's tables: words in the machine's byte
// order.
func tableAddress(a netip.AddrPort, six bool) string {
	bytes := a.Addr().Unmap().AsSlice()
	if six {
		b := a.Addr().As16()
		bytes = b[:]
	}
	var words strings.Builder
	for i := 0; i < len(bytes); i += 4 {
		word := []byte{bytes[i+3], bytes[i+2], bytes[i+1], bytes[i]}
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
			word = bytes[i : i+4]
		}
		words.WriteString(strings.ToUpper(hex.EncodeToString(word)))
	}
	return fmt.Sprintf("%s:%04X", words.String(), a.Port())
}
