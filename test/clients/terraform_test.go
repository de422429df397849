package clients_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// awsProvider is where mirrors of plugins have the provider that the configuration asks for.
const awsProvider = "registry.terraform.io/hashicorp/aws/5.100.0"

// mirrors are directories in which people keep plugins; Terraform knows the first three.
func mirrors() []string {
	home, _ := os.UserHomeDir() // without one there is no such directory
	return []string{
		filepath.Join(home, ".terraform.d/plugins"), "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins",
		"/opt/tf-plugins", os.Getenv("TF_PLUGIN_CACHE_DIR"),
	}
}

// pluginsFrom writes a configuration of Terraform's command line that has it take the
// provider from where it is on this machine, or else from where it is published.
func pluginsFrom(t *testing.T, dir string) string {
	t.Helper()
	var text string
	for _, mirror := range mirrors() {
		if mirror != "" && exists(filepath.Join(mirror, awsProvider)) {
			text = fmt.Sprintf("provider_installation {\n  filesystem_mirror { path = %q }\n}\n", mirror)
			break
		}
	}
	path := filepath.Join(dir, "terraformrc")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTerraform has Terraform make everything, find it as it is, change it, find it as
// it is again, and remove it.
func TestTerraform(t *testing.T) {
	t.Parallel()
	tf := newTerraform(t, "main.tf", "--function-isolation", "none")
	tf.write(t, "a.zip", zipped(t, "#!/bin/sh\n# a\n"))
	tf.write(t, "b.zip", zipped(t, "#!/bin/sh\n# b\n"))
	tf.lifeCycle(t, 35, []string{"-var", "code=a.zip"}, []string{"-var", "code=b.zip", "-var", "changed=true"})
}

// TestTerraformIdentity is TestTerraform of what IAM, STS and KMS have, where the server
// verifies who calls and asks its policies.
func TestTerraformIdentity(t *testing.T) {
	t.Parallel()
	tf := newTerraform(t, filepath.Join("identity", "main.tf"), "--enforce")
	tf.env = append(tf.env, "TF_VAR_access_key="+rootKey, "TF_VAR_secret_key="+rootSecret)
	tf.lifeCycle(t, 25, nil, []string{"-var", "changed=true"})
}

// TestTerraformStreams is TestTerraform of delivery streams, where roles have to be there and
// to trust Firehose.
func TestTerraformStreams(t *testing.T) {
	t.Parallel()
	tf := newTerraform(t, filepath.Join("streams", "main.tf"), "--enforce")
	tf.env = append(tf.env, "TF_VAR_access_key="+rootKey, "TF_VAR_secret_key="+rootSecret)
	tf.lifeCycle(t, 12, nil, []string{"-var", "changed=true"})
}

// TestTerraformStack is TestTerraform of a stack of CloudFormation.
func TestTerraformStack(t *testing.T) {
	t.Parallel()
	newTerraform(t, filepath.Join("stack", "main.tf")).lifeCycle(t, 2, nil, []string{"-var", "changed=true"})
}

// lifeCycle applies first, which makes at least n resources, then second, and destroys all.
func (tf *terraform) lifeCycle(t *testing.T, n int, first, second []string) {
	t.Helper()
	tf.apply(t, first)
	tf.noDrift(t, first)
	if made := tf.resources(t); made < n {
		t.Errorf("%d resources were made", made)
	}
	tf.apply(t, second)
	tf.noDrift(t, second)
	if out, err := tf.run(t, append([]string{"destroy", "-auto-approve", "-no-color"}, second...)...); err != nil {
		t.Fatalf("destroy: %v\n%s", err, out)
	}
	if left := tf.resources(t); left != 0 {
		t.Errorf("%d resources are left", left)
	}
}

// newTerraform starts a server for a configuration, and prepares a directory with it.
func newTerraform(t *testing.T, config string, flags ...string) *terraform {
	t.Helper()
	installed(t)
	const client = "Terraform with the AWS provider 5.100.0"
	path, err := exec.LookPath("terraform")
	if err != nil {
		skips.skip(t, client, "terraform is not installed")
	}
	at, stop, err := startServer(filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if logged := stop(); t.Failed() {
			t.Logf("the server logged:\n%s", logged)
		}
	})
	dir := t.TempDir()
	tf := &terraform{path: path, dir: dir, env: append(environment(dir, at.String()), "TF_IN_AUTOMATION=1", "TF_INPUT=0",
		"CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+pluginsFrom(t, dir), "TF_VAR_endpoint="+at.String())}
	text, err := os.ReadFile(filepath.Join("terraform", config))
	if err != nil {
		t.Fatal(err)
	}
	tf.write(t, "main.tf", text)
	if out, err := tf.run(t, "init", "-no-color"); err != nil {
		skips.skip(t, client, "terraform init does not find the provider: "+lastLines(out))
	}
	return tf
}

// terraform is a directory with a configuration.
type terraform struct {
	path, dir string
	env       []string
}

func (tf *terraform) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(tf.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns what a command printed.
func (tf *terraform) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tf.path, args...)
	cmd.Dir, cmd.Env = tf.dir, tf.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (tf *terraform) apply(t *testing.T, variables []string) {
	t.Helper()
	if out, err := tf.run(t, append([]string{"apply", "-auto-approve", "-no-color"}, variables...)...); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
}

// noDrift checks that nothing is as it should not be.
func (tf *terraform) noDrift(t *testing.T, variables []string) {
	t.Helper()
	out, err := tf.run(t, append([]string{"plan", "-detailed-exitcode", "-no-color"}, variables...)...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
		t.Fatalf("there is drift:\n%s", out)
	}
	if err != nil {
		t.Fatalf("plan: %v\n%s", err, out)
	}
}

// resources counts what Terraform manages.
func (tf *terraform) resources(t *testing.T) int {
	t.Helper()
	out, err := tf.run(t, "show", "-json")
	if err != nil {
		t.Fatalf("show: %v\n%s", err, out)
	}
	var state struct {
		Values struct {
			Root struct {
				Resources []json.RawMessage `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(out), &state); err != nil {
		t.Fatal(err)
	}
	return len(state.Values.Root.Resources)
}

// zipped is a function's code: a bootstrap, which is not run.
func zipped(t *testing.T, bootstrap string) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	w, err := archive.CreateHeader(header)
	if err == nil {
		_, err = w.Write([]byte(bootstrap))
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func lastLines(out string) string {
	lines := strings.Fields(out)
	return strings.Join(lines[max(0, len(lines)-30):], " ")
}
