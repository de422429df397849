package e2e_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestDeployedUnit starts what the unit in deploy/ starts, from what deploy/README.md has
// somebody make.
func TestDeployedUnit(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/godwit.service")
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/godwit (.*)$`).FindStringSubmatch(string(unit))
	if start == nil {
		t.Fatal("the unit starts nothing")
	}
	guide, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	making := regexp.MustCompile(`(?m)^ *godwit (init [^#\n]*)`).FindStringSubmatch(string(guide))
	if making == nil {
		t.Fatal("deploy/README.md makes nothing")
	}
	dir := t.TempDir()
	here := strings.NewReplacer("/etc/godwit", dir+"/etc", "/var/lib/godwit", dir+"/lib")
	if out, err := exec.Command(binary, strings.Fields(here.Replace(making[1]))...).CombinedOutput(); err != nil {
		t.Fatalf("godwit %s: %v\n%s", making[1], err, out)
	}
	addr := freeAddress(t)
	p := launch(t, addr, exec.Command(binary, append(strings.Fields(here.Replace(start[1])), "--listen", addr)...))
	p.awaitReady(t)
	// Nobody gets in without the key.
	stranger := &production{AccessKeyID: "AKIAIOSFODNN7EXAMPLE"}
	if _, err := stranger.sqs(p, "secret").ListQueues(t.Context(), &sqs.ListQueuesInput{MaxResults: aws.Int32(1)}); err == nil {
		t.Error("a stranger lists queues")
	}
}
