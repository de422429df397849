package artifacts

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// A server that stalls in the middle of objects keeps neither who reads them for ever, nor those
// that wait for these.
func TestStalledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Options{
			Config: config.Config{Region: "r", Artifacts: config.Artifacts{Endpoint: "http://127.0.0.1:1"}},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
						_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"e\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\nR")
					}
				}()
				return client, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2*maxReads)
		for range 2 * maxReads {
			go func() {
				_, err := s.Get(t.Context(), "bucket", "template", 1000)
				ended <- err
			}()
		}
		_ = clock.Wait(context.Background(), clock.System, readTime+time.Minute)
		synctest.Wait()
		if len(ended) != 2*maxReads {
			t.Fatalf("%d of %d reads have ended", len(ended), 2*maxReads)
		}
		for range 2 * maxReads {
			if err := <-ended; err == nil {
				t.Error("a part of an object is taken for all of it")
			}
		}
		s.server.Close()
	})
}
