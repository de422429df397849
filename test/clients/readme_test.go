package clients_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadme pastes the commands of README.md into a shell, block after block, and
// compares what they print with what is shown behind them, where … stands for anything.
//
// A block that is nothing but a server is a terminal of its own, until the next one. One
// that names a path of the repository runs there, the others in a directory of the test's. A block that
// needs a program which is not there is skipped, and so are those that need its variables.
func TestReadme(t *testing.T) {
	t.Parallel()
	follow(t, "README.md", "In production") // which test/e2e runs
}

// TestRecipes does the same with the recipes of docs/howto.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"docs/howto/boto3.md", "docs/howto/celery.md", "docs/howto/terraform.md", "docs/howto/sns-validator.md"} {
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			follow(t, document, "")
		})
	}
}

// follow does what a document says, but for the part below one heading.
func follow(t *testing.T, document, without string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	if before, part, found := strings.Cut(string(text), "\n## "+without+"\n"); found {
		_, after, _ := strings.Cut(part, "\n## ")
		text = []byte(before + "\n## " + after)
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, address)
	lacking := map[string]string{} // variables that a skipped block sets, by what it lacks
	for _, block := range blocks(string(text)) {
		block.text = strings.ReplaceAll(block.text, "127.0.0.1:4566", address)
		if serves.MatchString(block.text) {
			if lacksFile(r.scratch, block.text) {
				continue // what would have made it was skipped
			}
			r.serve(t, block.text)
			continue
		}
		if goesOn.MatchString(block.text) {
			continue
		}
		why := r.lacks(t, block.text)
		for name, program := range lacking {
			if strings.Contains(block.text, "$"+name) && !strings.Contains(block.text, name+"=") {
				why = program
			}
		}
		if why != "" {
			for _, set := range regexp.MustCompile(`(?m)^([A-Z]+)=`).FindAllStringSubmatch(block.text, -1) {
				lacking[set[1]] = why
			}
			if os.Getenv("GODWIT_PROGRAMS") != "" {
				skips.note(document+", "+strings.TrimSpace(firstLine(block.text)), why)
			}
			continue
		}
		if strings.Contains(block.text, "docker run") { // which takes the address
			r.stopServer()
		}
		out := r.paste(t, block.text)
		if !block.prints(out) {
			t.Errorf("%s shows\n%s\nand\n%s\nprints\n%s", document, block.shown, block.text, out)
		}
		if t.Failed() {
			t.FailNow() // what follows builds on it
		}
	}
}

// TestReadmeLinks: README.md links all documents, and links lead somewhere.
func TestReadmeLinks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
		to := link[1]
		if strings.Contains(to, "://") {
			continue
		}
		path := filepath.Join("../..", to)
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("README.md links %s, which is not there", to)
			continue
		}
		if info.IsDir() {
			to = filepath.Join(to, "README.md")
		}
		linked[filepath.Clean(to)] = true
	}
	for _, pattern := range []string{"*.md", "docs/*", "examples/*/README.md", "deploy/README.md"} {
		all, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %v, %v", pattern, all, err)
		}
		for _, path := range all {
			name, err := filepath.Rel("../..", path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(pattern, "docs/") {
				if info, err := os.Stat(path); err != nil {
					t.Fatal(err)
				} else if info.IsDir() {
					name += ".md" // the pictures of that page
				}
			}
			if name != "README.md" && !linked[name] {
				t.Errorf("README.md does not link %s", name)
			}
		}
	}
}

// block is a block of commands, and what is shown of its output.
type block struct{ text, shown string }

// fence is a block of any language; one of none shows output.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// serves is a block that starts a server and does not end.
var serves = regexp.MustCompile(`^godwit( --[^\n]*)?\n$`)

// goesOn is a block that works until it is interrupted: TestCelery has such a worker.
var goesOn = regexp.MustCompile(`^celery -A tasks worker\n$`)

func blocks(text string) (all []block) {
	for _, found := range fence.FindAllStringSubmatch(text, -1) {
		switch found[1] {
		case "sh":
			all = append(all, block{text: found[2]})
		case "":
			all[len(all)-1].shown += found[2]
		}
	}
	return all
}

// prints reports whether what is shown is a part of an output.
func (b block) prints(out string) bool {
	trim := func(s string) string { return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(s, "") }
	var pattern strings.Builder
	for n, part := range strings.Split(strings.TrimSpace(trim(b.shown)), "…") {
		if n > 0 {
			pattern.WriteString(`(?s:.*?)`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(pattern.String()).MatchString(trim(out))
}

// reader is somebody who follows README.md, with a shell.
type reader struct {
	address    string
	repository string
	scratch    string // the directory that the shell is in
	env        []string
	in         io.Writer
	out        *bufio.Reader
	stopServer func()
}

const (
	goneOn = "--went-on--" // behind each block's output, with what failed in it
	failed = "--failed--"
)

func newReader(t *testing.T, address string) *reader {
	t.Helper()
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{address: address, repository: repository, scratch: t.TempDir(), stopServer: func() {}}
	// go install writes to a place of the test's, and finds what it needs where it is.
	known := exec.Command("go", "env", "GOMODCACHE", "GOCACHE")
	places, err := known.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(places), "\n")
	home := filepath.Join(r.scratch, "go")
	r.env = slices.DeleteFunc(environment(r.scratch, ""), func(v string) bool {
		return strings.HasPrefix(v, "AWS_ENDPOINT_URL=") || strings.HasPrefix(v, "GOBIN=") || strings.HasPrefix(v, "GOPATH=")
	})
	r.env = append(r.env, "GOPATH="+home, "GOMODCACHE="+lines[0], "GOCACHE="+lines[1], "PATH="+os.Getenv("PATH")+":"+filepath.Join(home, "bin")+":"+filepath.Dir(binary),
		"TF_CLI_CONFIG_FILE="+pluginsFrom(t, r.scratch), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")

	// At a terminal curl shows no progress.
	if err := os.WriteFile(filepath.Join(r.scratch, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "CURL_HOME="+r.scratch)

	ctx, cancel := context.WithTimeout(t.Context(), 6*testTimeout) // a hundred commands, on a machine that is busy
	shell := exec.CommandContext(ctx, "bash")
	shell.Dir, shell.Env, shell.WaitDelay = r.scratch, r.env, time.Second
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	shell.Stdout, shell.Stderr = w, w
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	r.in, r.out = in, bufio.NewReader(out)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.CloseWithError(errors.Join(shell.Wait(), io.EOF))
	}()
	t.Cleanup(func() {
		cancel()
		_ = out.Close() // so that nothing waits to write to it
		<-ended
		r.stopServer()
	})
	fmt.Fprintf(r.in, "set -E\ntrap 'echo \"%s $BASH_COMMAND\"' ERR\n", failed)
	return r
}

// paste runs a block in the shell and returns what it printed.
func (r *reader) paste(t *testing.T, text string) string {
	t.Helper()
	dir := r.scratch
	if ofRepository.MatchString(text) {
		dir = r.repository
	}
	const end = "END_OF_BLOCK"
	fmt.Fprintf(r.in, "cd %s\neval \"$(cat <<'%s'\n%s%s\n)\" </dev/null\nprintf '\\n%s\\n'\n", dir, end, text, end, goneOn)
	var out strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		if strings.TrimSpace(line) == goneOn {
			break
		}
		out.WriteString(line)
		if err != nil {
			t.Fatalf("%s\n%s\n%v", text, out.String(), err)
		}
	}
	if strings.Contains(out.String(), failed) {
		t.Errorf("of\n%s\nfails\n%s", text, out.String())
	}
	return out.String()
}

// ofRepository is a block with a path of the repository.
var ofRepository = regexp.MustCompile(`(^|\s)(\./)?(cmd|deploy|examples)/`)

// serve starts a server in the place of the one that ran.
func (r *reader) serve(t *testing.T, text string) {
	t.Helper()
	r.stopServer()
	cmd := exec.Command("bash", "-c", text)
	cmd.Dir = r.scratch
	cmd.Env = append(slices.Clone(r.env), "GODWIT_LISTEN="+r.address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	r.stopServer = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails only if it has ended
		<-ended
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	scheme := "http://"
	if strings.Contains(text, "--tls-cert") {
		scheme = "https://"
	}
	if err := ready(ctx, scheme+r.address, ended); err != nil {
		r.stopServer()
		t.Fatalf("%s\n%v\n%s", text, err, out.String())
	}
}

// ready waits until a server answers, with whatever certificate.
func ready(ctx context.Context, url string, ended <-chan struct{}) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := web.Get(url + "/_godwit/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			return errors.New("the server ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// programs are what does not come with Go or a shell, and how to see that it can be used.
var programs = []struct{ name, check string }{
	{"aws", "aws --version"},
	{"curl", "curl --version"},
	{"docker", "docker info"},
	{"npm", "npm ping"}, // its packages are had from elsewhere, as are pip's
	{"openssl", "openssl version"},
	{"pip", "pip --retries 0 download --quiet --no-deps --dest \"$(mktemp -d)\" boto3"},
	{"python3", "python3 -c 'import boto3'"},
	{"terraform", "grep -q mirror $TF_CLI_CONFIG_FILE && terraform version"},
}

// lacks says which program of a block cannot be used here; nothing if all can.
func (r *reader) lacks(t *testing.T, text string) string {
	t.Helper()
	for _, program := range programs {
		if !regexp.MustCompile(`(?m)(^|[($|;&]\s*|command )` + program.name + ` `).MatchString(text) {
			continue
		}
		if os.Getenv("GODWIT_PROGRAMS") == "" {
			return "needs " + program.name
		}
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout) // some ask servers on the network
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", program.check)
		cmd.WaitDelay = time.Second
		cmd.Env = r.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("%s: %v %s", program.check, err, lastLines(string(out)))
		}
	}
	return ""
}

// lacksFile reports that a certificate, key or library which a server needs is not there.
func lacksFile(dir, text string) bool {
	return slices.ContainsFunc(regexp.MustCompile(`\S+\.pem|libraries\b`).FindAllString(strings.ReplaceAll(text, "--function-libraries", ""), -1), func(name string) bool {
		return !exists(filepath.Join(dir, name))
	})
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
