package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// commands are the blocks of commands of a document below a heading; empty: all of them. What
// stands in pairs is replaced.
func commands(t *testing.T, document, heading string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	of := string(text)
	if heading != "" {
		_, of, _ = strings.Cut(of, heading+"\n")
		of, _, _ = strings.Cut(of, "\n"+strings.Repeat("#", strings.Count(heading, "#"))+" ")
	}
	var all strings.Builder
	for _, found := range fence.FindAllStringSubmatch(of, -1) {
		if found[1] == "sh" {
			all.WriteString(found[2])
		}
	}
	if all.Len() == 0 {
		t.Fatalf("%s has no commands", document)
	}
	return strings.NewReplacer(pairs...).Replace(all.String())
}

// paste runs commands in a shell that finds godwit, until the first that fails. What goes on behind the
// last is ended.
func paste(t *testing.T, dir, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -eo pipefail\ncurl() { command curl --silent --show-error --fail \"$@\"; }\n"+text)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	none := filepath.Join(t.TempDir(), "none") // of the settings that this machine may have
	cmd.Env = append(cmd.Env, "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	// Into a file, which what goes on in the background does not keep open, as it does a pipe.
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err = cmd.Start(); err == nil {
		err = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if nothing goes on
	}
	out, unread := os.ReadFile(printed.Name())
	if err != nil || unread != nil {
		t.Fatalf("%v, %v\n%s", err, unread, out)
	}
	return string(out)
}

// need skips the test unless these programs may be used and are all installed.
func need(t *testing.T, client string, names ...string) {
	t.Helper()
	installed(t)
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			skips.skip(t, client, name+" is not installed")
		}
	}
}

// addresses are two that nobody listens on.
func addresses(t *testing.T) (one, other string) {
	t.Helper()
	one, err := freeAddress()
	for err == nil && (other == "" || other == one) {
		other, err = freeAddress()
	}
	if err != nil {
		t.Fatal(err)
	}
	return one, other
}

// TestStacksCommands follows docs/cloudformation.md, with a server of S3.
func TestStacksCommands(t *testing.T) {
	t.Parallel()
	need(t, "docs/cloudformation.md", "aws", "curl", "openssl")
	g := newGateway(t, "others")
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte(gatewayKey+"\n"+gatewaySecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, posts := addresses(t)
	out := paste(t, dir, commands(t, "docs/cloudformation.md", "",
		"godwit dev ", "godwit dev --listen "+address+" --artifacts-s3-credentials "+keys+" ", "127.0.0.1:4566", address,
		"Receives=0\n", "Receives=0 || echo fails\n", // as it is to
		"127.0.0.1:9000", g.address, "127.0.0.1:4580", posts,
		"AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test", "AWS_ACCESS_KEY_ID="+gatewayKey+" AWS_SECRET_ACCESS_KEY='"+gatewaySecret+"'"))
	for _, want := range []string{
		"CREATE_COMPLETE", "shop-orders", "VisibilityTimeout", "Fulfilment\t", "DETECTION_COMPLETE", "NOT_EQUAL",
		"AWS::Lambda::EventSourceMapping", "StackId", "messageId",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

// TestLibrariesCommands has libraries for functions, as docs/functions.md has it, and a server that
// lends them.
func TestLibrariesCommands(t *testing.T) {
	t.Parallel()
	follow(t, "docs/functions.md", "URLs") // those of test/e2e
}

// TestBucketCommands restores from a bucket as docs/operations.md has it.
func TestBucketCommands(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "backups")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(filepath.Join(dir, "s3-credentials"), []byte(gatewayKey+"\n"+gatewaySecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := startFollowed(t, data, "--backup-s3", "s3://backups/orders-1", "--backup-s3-endpoint", g.url(), "--backup-s3-credentials", filepath.Join(dir, "s3-credentials"), "--backup-interval", "1s")
	if _, err := f.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")}); err != nil {
		t.Fatal(err)
	}
	f.until(t, time.Now())
	f.stop()
	if err := os.Symlink(filepath.Join(data, "dev-root.key"), filepath.Join(dir, "root.key")); err != nil {
		t.Fatal(err)
	}
	out := paste(t, dir, commands(t, "docs/operations.md", "### Backups in a bucket",
		"https://s3.eu-west-1.amazonaws.com", g.url(), "eu-west-1", "us-east-1", "2026-03-01T09:00:00Z", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	if !strings.Contains(out, "is restored") {
		t.Errorf("it prints\n%s", out)
	}
}

// TestDurableJobCommands follows examples/durable-job/README.md, in one terminal.
func TestDurableJobCommands(t *testing.T) {
	t.Parallel()
	need(t, "examples/durable-job/README.md", "aws", "curl", "sqlite3")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	address, service := addresses(t)
	ledger := filepath.Join(dir, "ledger.db")
	const ask = "aws --endpoint-url $AWS_ENDPOINT_URL sqs "
	out := paste(t, root, commands(t, "examples/durable-job/README.md", "",
		"go run ./cmd/godwit ", "godwit --listen "+address+" --data "+filepath.Join(dir, "data")+" &\nuntil curl http://"+address+"/_godwit/ready; do sleep 0.1; done #",
		"go run ./payments ", "go run ./payments --listen "+service+" &\n#",
		"go run . ", "go run . --rest 50ms --payments http://"+service+" --ledger "+ledger+" &\nuntil "+ask+"get-queue-url --queue-name invoices; do sleep 0.2; done #",
		"done\ncurl ", "done\nuntil curl http://"+service+"/charges | grep R-2; do sleep 0.2; done\ncurl ",
		ask+"receive-message", "until "+ask+"receive-message --queue-url $Q-dead | grep R-3; do sleep 0.2; done #",
		"127.0.0.1:4566", address, "127.0.0.1:8098", service, "sqlite3 ledger.db", "sqlite3 "+ledger,
	))
	for _, want := range []string{"R-1", "R-2", "R-3", "the amount must be positive"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}
