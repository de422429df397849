package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// The commands of documents work as they are written, but for addresses and directories.

// pasted is a shell for commands of a document that finds godwit.
func pasted(t *testing.T, dir, addr string, replace ...string) readme.Shell {
	t.Helper()
	return readme.Shell{
		Dir: dir, Address: addr, Within: 10 * time.Minute, Replace: strings.NewReplacer(replace...),
		Env: []string{
			"PATH=" + filepath.Dir(binary) + string(filepath.ListSeparator) + os.Getenv("PATH"), "GODWIT_ENDPOINT=http://" + addr,
			"HOME=" + dir, isolationVariable(),
		},
	}
}

// isolationVariable is isolation of the environment.
func isolationVariable() string {
	name, value, ok := strings.Cut(isolation(), "=")
	if !ok {
		value = "true"
	}
	return "GODWIT_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_")) + "=" + value
}

// awsCLI is what documents have from README.md's first steps.
var awsCLI = readme.Block{Text: `export AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_PAGER=
aws() { command aws --endpoint-url http://127.0.0.1:4566 "$@"; }
URL=$(aws sqs create-queue --queue-name fulfilment --query QueueUrl --output text)
aws sqs create-queue --queue-name undeliverable
TOPIC=$(aws sns create-topic --name orders --query TopicArn --output text)
`}

func TestTerminalCommands(t *testing.T) {
	s := start(t)
	if out := pasted(t, t.TempDir(), s.addr).Run(t, readme.Of(t, top, "docs/cli.md")); !strings.Contains(out, "VISIBLE") || !strings.Contains(out, "Nothing needs a person") {
		t.Errorf("it prints\n%s", out)
	}
	pasted(t, t.TempDir(), freeAddress(t)).Run(t, readme.Of(t, top, "docs/monitoring.md"))
}

func TestMigrateCommands(t *testing.T) {
	dir, other := t.TempDir(), start(t)
	if err := os.Mkdir(filepath.Join(dir, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".aws", "credentials"), []byte("[production]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if err := other.sqs(t.Context(), "CreateQueue", object{"QueueName": name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t)
	out := pasted(t, dir, s.addr,
		"http://127.0.0.1:4567 --dry-run\n", other.base+" --dry-run || [ $? = 2 ]\n", // 2: there is something to do
		"http://127.0.0.1:4567", other.base, "http://127.0.0.1:9324", other.base,
		"https://sqs.eu-central-1.amazonaws.com", other.base, "https://sns.eu-central-1.amazonaws.com", other.base,
	).Run(t, readme.Of(t, top, "docs/migrate.md"))
	for _, want := range []string{"+ queue one", "+ queue two", "nothing differs"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

func TestUpgradeCommands(t *testing.T) {
	dir := t.TempDir()
	s := startAt(t, freeAddress(t), filepath.Join(dir, "godwit-data"))
	out := pasted(t, dir, s.addr).Run(t, readme.Of(t, top, "docs/upgrade.md"))
	for _, want := range []string{"each as it was made", "is restored"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

// A backup of a server that went since is looked at, and then delivers.
func TestPausedCommands(t *testing.T) {
	programs.Need(t, "curl")
	dir := t.TempDir()
	s := startAt(t, freeAddress(t), filepath.Join(dir, "godwit-data"))
	printed(t, exec.Command(binary, "backup", "--endpoint", s.base, filepath.Join(dir, "orders-backup")))
	s.terminate(t)
	s.exit(t)
	blocks := readme.Of(t, top, "docs/operations.md")
	if n := len(blocks); n != 1 {
		t.Fatalf("there are %d blocks", n)
	}
	delivering := "curl http://127.0.0.1:4566/_godwit/v1/delivering\n"
	const begin = "godwit deliveries begin\n"
	blocks[0].Text = strings.Replace(blocks[0].Text, begin, delivering+begin+delivering, 1)
	if blocks[0].Shown != "" {
		t.Error("more is shown than this looks for")
	}
	blocks[0].Shown = `"held":true…"held":false`
	pasted(t, dir, s.addr).Run(t, blocks)
}

// What godwit serve is started with, in documents.
func TestProductionCommands(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	certificate, key := newAuthority(t).files(t, dir)
	for name, text := range map[string]string{"relay.password": "secret\n", "smsc.password": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dkim, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "dkim.pem"), "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(dkim))
	var blocks []readme.Block
	for _, document := range []string{"README.md", "docs/compatibility.md", "docs/sms.md"} {
		blocks = append(blocks, readme.Of(t, top, document)...)
	}
	told := pasted(t, dir, addr,
		"godwit serve ", "godwit serve --listen "+addr+" ", "--listen 0.0.0.0:443", "--listen "+addr,
		"/etc/godwit", dir+"/etc", "/var/lib/godwit", dir+"/lib", "tls.crt", certificate, "tls.key", key,
	).Run(t, blocks)
	if !strings.Contains(told, "access key") {
		t.Errorf("nobody is told the access key:\n%s", told)
	}
}

func TestOperatorCommands(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl")
	s := start(t, "--clock", "virtual")
	out := pasted(t, t.TempDir(), s.addr).Run(t, append([]readme.Block{awsCLI, {Text: `aws sqs send-message --queue-url $URL --message-body 'order 1'
aws sns publish --topic-arn $TOPIC --message 'order 2'
`}}, readme.Of(t, top, "docs/operator-api.md")...))
	for _, want := range []string{"order 1", "order 2", `"kind":"redrive"`, `"now":`} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

func TestServiceCommands(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "node", "python3")
	for _, document := range []string{"docs/compatibility.md", "docs/firehose.md", "docs/functions.md", "docs/ingest.md", "docs/push.md", "docs/sms.md"} {
		t.Run(strings.TrimSuffix(filepath.Base(document), ".md"), func(t *testing.T) {
			s, posts := start(t), freeAddress(t)
			if document == "docs/ingest.md" { // which starts its own
				s.terminate(t)
				s.exit(t)
			}
			out := pasted(t, t.TempDir(), s.addr, "127.0.0.1:4580", posts).Run(t, readme.Of(t, top, document))
			for _, want := range said[document] {
				if !strings.Contains(out, want) {
					t.Errorf("nothing says %q:\n%s", want, out)
				}
			}
		})
	}
}

// said is what the commands of a document print, in any order.
var said = map[string][]string{
	"docs/compatibility.md": {"The press has stopped", "MessageId"},
	"docs/firehose.md":      {"DeliveryStreamARN", "RecordId", "MessageId"},
	"docs/functions.md":     {"You are at /orders/7", "You are at /orders/8"},
	"docs/ingest.md":        {"shop", "messageId"},
	"docs/push.md":          {"device-1"},
	"docs/sms.md":           {"+15551234567", `"optedOut":true`, `"isOptedOut": true`},
}
