package testcontainers

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tc "github.com/testcontainers/testcontainers-go"
)

// An image is built of the binary, which may be executed, and nothing else.
func TestImage(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "some-godwit")
	if err := os.WriteFile(binary, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r tc.GenericContainerRequest
	if err := WithBinary(binary)(&r); err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(r.ContextArchive)
	found := map[string]string{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "godwit" && h.Mode != 0o755 {
			t.Errorf("the program has mode %o", h.Mode)
		}
		found[h.Name] = string(content)
	}
	if found["godwit"] != "a program" || !strings.HasPrefix(found["Dockerfile"], "FROM scratch\n") || len(found) != 2 {
		t.Errorf("an image is built of %q", found)
	}
	if err := WithBinary(filepath.Join(t.TempDir(), "none"))(&r); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no binary: %v", err)
	}
}

// Flags come behind the command.
func TestFlags(t *testing.T) {
	r := tc.GenericContainerRequest{ContainerRequest: tc.ContainerRequest{Cmd: []string{"dev"}}}
	for _, option := range []tc.CustomizeRequestOption{WithVirtualClock(), WithFlags("--enforce")} {
		if err := option(&r); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"dev", "--clock", "virtual", "--jitter", "0", "--enforce"}; !slices.Equal(r.Cmd, want) {
		t.Errorf("the command is %v, want %v", r.Cmd, want)
	}
}

// What the server refuses is said in its words.
func TestRefusal(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case `{"advance":"1h0m0s"}`:
			_, _ = io.WriteString(w, `{"now":"x"}`)
		case `{"advance":"now"}`:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"advance: want a duration","code":"BadRequest"}`)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer s.Close()
	for advance, want := range map[string]string{"1h0m0s": "", "now": "advance: want a duration", "later": "502 Bad Gateway"} {
		err := post(t.Context(), s.URL, map[string]string{"advance": advance})
		if got := text(err); got != want {
			t.Errorf("%s: %q, want %q", advance, got, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
