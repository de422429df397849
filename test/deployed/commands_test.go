package deployed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
)

// TestKubernetesCommands runs the commands of deploy/README.md for Kubernetes: kubectl says what it
// would make, and Helm's own reader takes what is set, of which the chart makes nodes that
// have these secrets.
func TestKubernetesCommands(t *testing.T) {
	need(t, "bash", "kubectl")
	const document = "deploy/README.md"
	text, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## Kubernetes\n")
	script := `set -euo pipefail
kubectl() { command kubectl "$@" --dry-run=client -o name; }
helm() { printf 'helm'; printf '\t%s' "$@"; echo; }
`
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(part, -1) {
		script += block[1]
	}
	dir := certificate(t, "127.0.0.1")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set, made, installs := values{}, string(out), 0
	for line := range strings.Lines(made) {
		args := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if args[0] != "helm" {
			continue
		}
		for i, arg := range args {
			if arg != "--set" {
				continue
			}
			if err := strvals.ParseInto(args[i+1], set); err != nil {
				t.Fatalf("%s: %v", args[i+1], err)
			}
		}
		installs++
		nodes := rendered(t, "godwit", set).nodes(t, "godwit")
		secrets := 0
		for _, v := range nodes.Spec.Template.Spec.Volumes {
			if v.Secret == nil {
				continue
			}
			if secrets++; !strings.Contains(made, "secret/"+v.Secret.SecretName+"\n") {
				t.Errorf("nothing makes the secret %s:\n%s", v.Secret.SecretName, made)
			}
		}
		if want := []int{0, 2, 3}[min(installs, 2)]; secrets != want {
			t.Errorf("%q has %d secrets, want %d", line, secrets, want)
		}
		if want := []int32{0, 1, 3}[min(installs, 2)]; *nodes.Spec.Replicas != want {
			t.Errorf("%q makes %d nodes, want %d", line, *nodes.Spec.Replicas, want)
		}
	}
	if installs != 2 {
		t.Errorf("%d installations", installs)
	}
}
