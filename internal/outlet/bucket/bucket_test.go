package bucket_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/bucket"
	"godwit.dev/godwit/internal/publicnet"
)

// fake is as much of S3 as objects need: puts, and uploads in parts.
type fake struct {
	*httptest.Server

	t *testing.T

	mu      sync.Mutex
	status  int // of all answers; 0: as it should be
	objects map[string][]byte
	parts   map[string][]byte // by the object and the number of the part
	signed  int
	aborted int
	headers http.Header // of the latest object
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, objects: map[string][]byte{}, parts: map[string][]byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if sum := md5.Sum(body); r.Method == http.MethodPut && (r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-")) {
		f.t.Errorf("%s is sent with %v", r.URL, r.Header) // or nobody would see that it was changed on its way
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
		f.signed++
	}
	if f.status != 0 || err != nil {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
		return
	}
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		f.headers = r.Header.Clone()
		_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPut && q.Has("partNumber"):
		f.parts[r.URL.Path+"?"+q.Get("partNumber")] = body
		w.Header().Set("ETag", `"`+q.Get("partNumber")+`"`)
	case r.Method == http.MethodPost && q.Has("uploadId"):
		var in struct {
			Part []struct{ PartNumber string }
		}
		_ = xml.Unmarshal(body, &in)
		var whole []byte
		for _, p := range in.Part {
			whole = append(whole, f.parts[r.URL.Path+"?"+p.PartNumber]...)
		}
		f.objects[r.URL.Path] = whole
		_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodDelete:
		f.aborted++
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		f.headers = r.Header.Clone()
		f.objects[r.URL.Path] = body
		w.Header().Set("ETag", `"e"`)
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

func (f *fake) object(path string) (text []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok = f.objects[path]
	return text, ok
}

func server(t *testing.T, at string, allow bool) *bucket.Server {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bucket.New(bucket.Options{
		Endpoint: u, Region: "us-east-1", AccessKey: "key", Secret: "secret", PathStyle: true,
		Dial: (&net.Dialer{Control: publicnet.Guard{AllowPrivate: allow}.Control}).DialContext,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func pieces(n int) (whole []byte, write func(w io.Writer) error) {
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	return bytes.Repeat(piece, n), func(w io.Writer) error {
		for range n {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
}

// Objects are there whole, small ones and such as come in parts.
func TestPut(t *testing.T) {
	f := newFake(t)
	s := server(t, f.URL, true)
	for _, n := range []int{0, 1, 16, 17, 40} {
		whole, write := pieces(n)
		if err := s.Put(t.Context(), outlet.Name{Bucket: "bucket", Key: "a b/ü.gz", GZIP: true}, write); err != nil {
			t.Fatal(err)
		}
		if got, ok := f.object("/bucket/a b/ü.gz"); !ok || !bytes.Equal(got, whole) {
			t.Errorf("%d MiB: there are %d bytes", n, len(got))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signed == 0 || f.headers.Get("Content-Encoding") != "gzip" || f.aborted != 0 {
		t.Errorf("%d signed, %v", f.signed, f.headers)
	}
}

// What fails leaves no object, and says why.
func TestPutFails(t *testing.T) {
	f := newFake(t)
	s := server(t, f.URL, true)
	_, write := pieces(20)
	broken := errors.New("broken")
	for _, first := range []func(w io.Writer) error{func(io.Writer) error { return nil }, write} {
		err := s.Put(t.Context(), outlet.Name{Bucket: "bucket", Key: "k"}, func(w io.Writer) error {
			if err := first(w); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	f.mu.Lock()
	f.status = http.StatusForbidden
	f.mu.Unlock()
	for _, n := range []int{1, 20} {
		_, write := pieces(n)
		err := s.Put(t.Context(), outlet.Name{Bucket: "bucket", Key: "k"}, write)
		if e, ok := errors.AsType[*outlet.Error](err); !ok || e.Code != "S3.AccessDenied" || e.Message != "Access Denied" {
			t.Errorf("%d MiB: %v", n, err)
		}
	}
	if _, ok := f.object("/bucket/k"); ok {
		t.Error("there is an object")
	}
	_, small := pieces(1)
	if e, ok := errors.AsType[*outlet.Error](server(t, f.URL, false).Put(t.Context(), outlet.Name{Bucket: "bucket", Key: "k"}, small)); !ok || !strings.HasPrefix(e.Code, "S3.") {
		t.Errorf("a forbidden address: %v", e)
	}
}
