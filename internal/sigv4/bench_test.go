package sigv4

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// sdkRequest is a request with the headers of an SDK's, most of which are signed.
func sdkRequest(body string) Request {
	r := Request{
		Method: "POST", Path: "/", Host: "127.0.0.1:4566", Service: "sqs", Exact: true,
		Header: http.Header{
			"X-Amz-Target": {"AmazonSQS.SendMessage"}, "Content-Type": {"application/x-amz-json-1.0"}, "Content-Length": {"1024"},
			"Amz-Sdk-Invocation-Id": {"9ac14e94-c871-4cc4-80cd-3d663a727aa9"}, "Amz-Sdk-Request": {"attempt=1; max=3"}, "X-Amzn-Query-Mode": {"true"},
		},
	}
	alice.header(&r, body)
	return r
}

// BenchmarkVerify is what it costs to find out who has sent a body: its digest included,
// with the signing key in the cache. BenchmarkDigest is the digest alone.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			w, text := newWorld(), strings.Repeat("x", size)
			r, body := sdkRequest(text), []byte(text)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Payload = sha256.Sum256(body)
				if _, err := w.Verify(&r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			body := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				_ = sha256.Sum256(body)
			}
		})
	}
}

// A verification with a warm cache allocates little: its memory is not what it costs.
func TestVerifyAllocatesLittle(t *testing.T) {
	w, r := newWorld(), sdkRequest("{}")
	if n := testing.AllocsPerRun(100, func() {
		if _, err := w.Verify(&r); err != nil {
			t.Fatal(err)
		}
	}); n > 8 {
		t.Errorf("%v allocations", n)
	}
}
