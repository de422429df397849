package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestImage runs what deploy/Dockerfile puts into an image, in a directory that has
// nothing else, since not every machine has Docker.
func TestImage(t *testing.T) {
	t.Parallel()
	installed(t)
	const client = "what an image of deploy/Dockerfile holds"
	if os.Geteuid() != 0 {
		skips.skip(t, client, "chroot takes root")
	}
	root := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(root, "godwit"), "./cmd/godwit")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	text, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var env, entry, command []string
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ENV":
			env = strings.Fields(rest)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &entry)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &command)
		case "VOLUME":
			err = os.Mkdir(filepath.Join(root, rest), 0o700)
		case "FROM":
			if rest != "scratch" {
				t.Errorf("FROM %s takes a registry", rest)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(entry[0], append(entry[1:], command...)...)
	cmd.Dir, cmd.Env = "/", append(env, "GODWIT_LISTEN="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	defer func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		<-ended
		if t.Failed() {
			t.Logf("the server printed:\n%s", out.String())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := ready(ctx, "http://"+address, ended); err != nil {
		t.Fatal(err)
	}
	w := &window{url: (&url.URL{Scheme: "http", Host: address}).String()}
	if _, arn := createQueue(t, w.sqs(), "q", nil); arn == "" {
		t.Error("no queue")
	}
	if !exists(filepath.Join(root, "data", "wal")) && !exists(filepath.Join(root, "data")) {
		t.Error("the data are elsewhere")
	}
}
