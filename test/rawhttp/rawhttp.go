// Package rawhttp sends HTTP requests to a server as a test has written them, byte by byte.
package rawhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// Exchange sends text as it is to an address on a connection of its own, and returns the
// answer's status and body.
func Exchange(t testing.TB, address, text string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text) // a server may answer, and hang up, before it has read all
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, _ := io.ReadAll(answer.Body) // as far as it came
	return answer.StatusCode, string(all)
}
