package bucket

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/outlet"
)

// stalled is a Server whose answers begin, and do not end.
func stalled(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{
		Endpoint: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Region: "r", PathStyle: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
					return
				}
				_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"e\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\n<a>")
			}()
			return client, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A server that stalls in the middle of an answer does not keep the reader for ever.
func TestStalledReads(t *testing.T) {
	for name, read := range map[string]func(context.Context, *Server) error{
		"object": func(ctx context.Context, s *Server) error {
			r, err := s.Get(ctx, outlet.Name{Bucket: "bucket", Key: "k"})
			if err != nil {
				return err
			}
			_, err = io.ReadAll(r)
			_ = r.Close()
			return err
		},
		"list": func(ctx context.Context, s *Server) error {
			return s.Each(ctx, "bucket", "", func(Object) error { return nil })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stalled(t)
			defer s.Close()
			ended := make(chan error, 1)
			go func() { ended <- read(t.Context(), s) }()
			_ = clock.Wait(context.Background(), clock.System, objectTime+time.Minute)
			synctest.Wait()
			select {
			case err := <-ended:
				if err == nil {
					t.Errorf("%s: half an answer is taken for all of it", name)
				}
			default:
				t.Fatalf("%s: it is still being read", name)
			}
		})
	}
}
