package deployed_test

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestImage runs what deploy/Dockerfile makes, as docker run does.
func TestImage(t *testing.T) {
	i := built(t)
	var files []string
	err := filepath.WalkDir(i.files, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, i.files))
		}
		return err
	})
	if want := []string{"/etc/ssl/certs/ca-certificates.crt", "/godwit"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("it has %v: %v", files, err)
	}
	if i.Config.User != "65532:65532" {
		t.Errorf("its user is %s", i.Config.User)
	}
	address := freeAddress(t)
	data := i.volume(t, "/data")
	for _, what := range []string{"first", "again"} {
		c := &container{image: i, writable: true, env: []string{"GODWIT_LISTEN=" + address}, mounts: []mount{{from: data, to: "/data"}}}
		r := c.start(t)
		r.ready(t, http.DefaultClient, "http://"+address+"/_godwit/ready")
		if what == "first" {
			ask(t, "http://"+address, "CreateQueue")
		} else if got := ask(t, "http://"+address, "ListQueues"); !strings.Contains(got, "/q</QueueUrl>") {
			t.Errorf("the volume has lost what there was: %s", got)
		}
		if status := r.end(t); status != 0 {
			t.Errorf("it ends with %d", status)
		}
	}
}

// ask makes a request of SQS for the queue q in development.
func ask(t *testing.T, url, action string) string {
	t.Helper()
	answer, err := http.Post(url, "application/x-www-form-urlencoded", strings.NewReader("Version=2012-11-05&QueueName=q&Action="+action))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	if err := answer.Write(&text); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s", action, err, text.String())
	}
	return text.String()
}

// project reads deploy/compose.yaml as Docker Compose does, and strictly.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../deploy/compose.yaml"}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompose(t *testing.T) {
	p := project(t)
	s, err := p.GetService("godwit")
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range s.Ports {
		if port.HostIP != "127.0.0.1" {
			t.Errorf("port %d, where any credentials will do, is reached at %q", port.Target, port.HostIP)
		}
	}
	if top, err := filepath.Abs("../.."); err != nil || s.Build.Context != filepath.Join(top, "bin", "image") {
		t.Errorf("it is built of %s: %v", s.Build.Context, err)
	}
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= 20*time.Second {
		t.Error("a stop cuts off what drains")
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.Privileged {
		t.Error("it has rights that it does not need")
	}
	for _, v := range s.Volumes {
		if _, ok := p.Volumes[v.Source]; !ok {
			t.Errorf("there is no volume %s", v.Source)
		}
	}
}

// TestComposeRuns runs the container of deploy/compose.yaml, and what tells its health.
func TestComposeRuns(t *testing.T) {
	i := built(t)
	s, err := project(t).GetService("godwit")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	c := &container{image: i, args: s.Command, env: []string{"GODWIT_LISTEN=" + address, "GODWIT_ENDPOINT=http://" + address}}
	for _, v := range s.Volumes {
		c.mounts = append(c.mounts, mount{from: i.volume(t, v.Target), to: v.Target})
	}
	for _, path := range s.Tmpfs {
		c.mounts = append(c.mounts, mount{to: path})
	}
	r := c.start(t)
	r.ready(t, http.DefaultClient, "http://"+address+"/_godwit/ready")
	ask(t, "http://"+address, "CreateQueue")
	if s.HealthCheck.Test[0] != "CMD" {
		t.Fatalf("its health is told by a shell: %v", s.HealthCheck.Test)
	}
	if out, err := r.exec(s.HealthCheck.Test[1:]...); err != nil {
		t.Errorf("it is not well: %v\n%s", err, out)
	}
	if status := r.end(t); status != 0 {
		t.Errorf("it ends with %d", status)
	}
}

// make image-files makes what deploy/Dockerfile copies.
func TestImageFiles(t *testing.T) {
	dry := exec.Command("make", "--dry-run", "image-files")
	dry.Dir = "../.."
	out, err := dry.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"Dockerfile", "Dockerfile.functions"} {
		dockerfile, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		copied := 0
		for line := range strings.Lines(string(dockerfile)) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" {
				copied++
				if from := strings.TrimSuffix(words[len(words)-2], "/"); !strings.Contains(string(out), "bin/image/"+from) {
					t.Errorf("make image-files does not make %s:\n%s", from, out)
				}
			}
		}
		if copied == 0 {
			t.Errorf("%s copies nothing", name)
		}
	}
}
