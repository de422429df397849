package clustered

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a client says in the name of a node does not reach the owner, however it is written: in any case, twice,
// named by Connection, or behind the body.
func TestHeadersOfPeersFromClients(t *testing.T) {
	asked := make(chan *http.Request, 1)
	address := startBeside(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) { asked <- r })
	for _, name := range ofPeers {
		came := 0
		for _, request := range []string{
			"Content-Length: 4\r\n" + strings.ToLower(name) + ": spoofed\r\n\r\nbody",
			"Content-Length: 4\r\n" + strings.ToUpper(name) + ": spoofed\r\n" + name + ":spoofed\r\n\r\nbody",
			"Content-Length: 4\r\nConnection: close, " + name + "\r\n" + name + ": spoofed\r\n\r\nbody",
			"Transfer-Encoding: chunked\r\nTrailer: " + name + "\r\n\r\n4\r\nbody\r\n0\r\n" + name + ": spoofed\r\n\r\n",
			"Content-Length: 4\r\nX-A: b\r\n " + name + ": spoofed\r\n\r\nbody", // it goes on
			"Content-Length: 4\r\n" + name + " : spoofed\r\n\r\nbody",
			"Content-Length: 4\r\n" + name + "\x00: spoofed\r\n\r\nbody",
		} {
			if status, text := exchanged(t, address, "POST / HTTP/1.1\r\nHost: x\r\n"+request, false); status == http.StatusBadRequest {
				continue
			} else if status != http.StatusOK {
				t.Fatalf("%q: status %d: %s", request, status, text)
			}
			r := <-asked
			came++
			if r.Header.Get(name) != "" || r.Trailer.Get(name) != "" || r.RemoteAddr == "spoofed" || r.TLS != nil || r.Host != "x" || r.Method != http.MethodPost {
				t.Errorf("%q comes as %v %v from %s", request, r.Header, r.Trailer, r.RemoteAddr)
			}
		}
		if came < 3 {
			t.Errorf("%s: %d requests came, the others were refused", name, came)
		}
	}
}
