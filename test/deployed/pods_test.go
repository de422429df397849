package deployed_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// machine runs the pods of a StatefulSet as a node of Kubernetes does, as far as the server sees
// it: users and groups, volumes with the modes and owners that they have there, names, variables,
// containers that come first. What runs them is runc.
type machine struct {
	image   *image
	objects objects
	secrets map[string]string // directories with the files of Secrets
	disks   map[string]string // of pods, by their names
}

// pod is one that runs.
type pod struct {
	*running
	name, ip string
	server   *corev1.Container
}

// writeFile makes a file of a volume that Kubernetes makes: root's, for a group.
func writeFile(t *testing.T, path string, text []byte, mode *int32, group int64) {
	t.Helper()
	err := os.WriteFile(path, text, 0o600)
	if err == nil {
		err = os.Chown(path, 0, int(group))
	}
	if err == nil {
		err = os.Chmod(path, os.FileMode(*mode)|0o440) // what fsGroup adds
	}
	if err != nil {
		t.Fatal(err)
	}
}

// volume is the directory of a pod's volume; "" for one in memory.
func (m *machine) volume(t *testing.T, v *corev1.Volume, group int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chown(dir, 0, int(group)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	switch {
	case v.Secret != nil:
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil { // memory
			t.Fatal(err)
		}
		from, ok := m.secrets[v.Secret.SecretName]
		if !ok {
			t.Fatalf("there is no Secret %s", v.Secret.SecretName)
		}
		files := map[string]string{}
		for _, item := range v.Secret.Items {
			files[item.Key] = item.Path
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		// Files are links, which lead through one to a directory of what there is at a time.
		at := filepath.Join(dir, "..now")
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..now", filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		made := 0
		for _, e := range entries {
			name := e.Name()
			if to, ok := files[name]; ok || len(files) == 0 {
				if ok {
					name = to
				}
				text, err := os.ReadFile(filepath.Join(from, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(at, name), text, v.Secret.DefaultMode, group)
				if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				made++
			}
		}
		if made < len(files) {
			t.Fatalf("the Secret %s lacks some of %v", v.Secret.SecretName, files)
		}
	case v.ConfigMap != nil:
		of, ok := m.objects["ConfigMap "+v.ConfigMap.Name].(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("there is no ConfigMap %s", v.ConfigMap.Name)
		}
		for name, text := range of.Data {
			writeFile(t, filepath.Join(dir, name), []byte(text), v.ConfigMap.DefaultMode, group)
		}
	case v.EmptyDir != nil:
	default:
		t.Fatalf("%s is a volume that was not thought of", v.Name)
	}
	return dir
}

// run starts the pod of a StatefulSet with a number, in a network namespace where it has an
// address, and waits for the containers that come first.
func (m *machine) run(t *testing.T, s *appsv1.StatefulSet, number int, ip, network, hosts string) *pod {
	t.Helper()
	p := &pod{name: fmt.Sprintf("%s-%d", s.Name, number), ip: ip}
	spec := &s.Spec.Template.Spec
	group := *spec.SecurityContext.FSGroup
	volumes := map[string]string{}
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = m.volume(t, &spec.Volumes[i], group)
	}
	for _, claim := range s.Spec.VolumeClaimTemplates {
		disk := m.disks[p.name]
		if disk == "" { // as it comes the first time; then its modes are left alone
			disk = m.volume(t, &corev1.Volume{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, group)
			if err := os.Chmod(disk, 0o775|os.ModeSetgid); err != nil {
				t.Fatal(err)
			}
			m.disks[p.name] = disk
		}
		volumes[claim.Name] = disk
	}
	make := func(of *corev1.Container) *container {
		c := &container{
			image: m.image, user: fmt.Sprintf("%d:%d", *spec.SecurityContext.RunAsUser, *spec.SecurityContext.RunAsGroup), groups: []int64{group},
			writable: !*of.SecurityContext.ReadOnlyRootFilesystem, network: network, args: []string{},
		}
		var names []string
		for _, e := range of.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = map[string]string{"metadata.name": p.name, "status.podIP": ip}[e.ValueFrom.FieldRef.FieldPath]
			}
			c.env, names = append(c.env, e.Name+"="+value), append(names, "$("+e.Name+")", value)
		}
		for _, arg := range of.Args {
			c.args = append(c.args, strings.NewReplacer(names...).Replace(arg))
		}
		for _, v := range of.VolumeMounts {
			c.mounts = append(c.mounts, mount{from: filepath.Join(volumes[v.Name], v.SubPath), to: v.MountPath, read: v.ReadOnly})
		}
		if hosts != "" {
			c.mounts = append(c.mounts, mount{from: hosts, to: "/etc/hosts", read: true})
		}
		return c
	}
	for i := range spec.InitContainers {
		first := make(&spec.InitContainers[i]).start(t)
		if status := first.await(t); status != 0 {
			t.Fatalf("%s of %s ends with %d:\n%s", spec.InitContainers[i].Name, p.name, status, first.printed())
		}
	}
	p.server = &spec.Containers[0]
	p.running = make(p.server).start(t)
	return p
}

// ready waits until the pod's probe says that it is.
func (p *pod) ready(t *testing.T) {
	t.Helper()
	probe := p.server.ReadinessProbe.HTTPGet
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	p.running.ready(t, client, strings.ToLower(string(probe.Scheme))+"://"+p.ip+":4566"+probe.Path)
}

// operate runs the program of the image as an operator's, signed with the root user's access key.
func operate(t *testing.T, key accessKey, url string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(binary, append(args, "--endpoint", url)...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+key.ID, "AWS_SECRET_ACCESS_KEY="+key.Secret, "AWS_REGION=us-east-1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

type accessKey struct {
	ID     string `json:"accessKeyId"`
	Secret string `json:"secretAccessKey"`
}

// initialised makes a Secret's directory by godwit init, as the chart says.
func initialised(t *testing.T) (dir string, key accessKey) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "keys")
	out, err := exec.Command(binary, "init", "--dir", dir, "--data", "/var/lib/godwit/data", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, key
}

const queues = `Queues: [{QueueName: kept}]`

// apply has a server have the queue kept.
func apply(t *testing.T, key accessKey, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resources.yaml")
	if err := os.WriteFile(file, []byte(queues), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := operate(t, key, url, "apply", file); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
}

func hasQueue(t *testing.T, key accessKey, url string) {
	t.Helper()
	if out, err := operate(t, key, url, "export"); err != nil || !strings.Contains(out, "QueueName: kept") {
		t.Errorf("export: %v\n%s", err, out)
	}
}

// TestChartRuns starts what the chart makes of a single node, with the volumes that it has there,
// and once more on the same disk.
func TestChartRuns(t *testing.T) {
	i := built(t)
	for name, v := range map[string]values{"plain": with(single, values{"admin": values{"enabled": true}}), "secure": secure} {
		t.Run(name, func(t *testing.T) {
			m := &machine{image: i, objects: rendered(t, "r", v), secrets: map[string]string{}, disks: map[string]string{}}
			var key accessKey
			m.secrets["the-keys"], key = initialised(t)
			n := newNetwork(t, 1)
			url := "http://" + n.addresses[0] + ":4566"
			if name == "secure" {
				url = "https://" + n.addresses[0] + ":4566"
				m.secrets["the-certificate"] = certificate(t, n.addresses[0])
				t.Setenv("AWS_CA_BUNDLE", filepath.Join(m.secrets["the-certificate"], "tls.crt"))
			}
			for _, start := range []string{"first", "second"} {
				p := m.run(t, m.objects.nodes(t, "r-godwit"), 0, n.addresses[0], n.paths[0], "")
				p.ready(t)
				if start == "first" {
					apply(t, key, url)
				}
				hasQueue(t, key, url)
				if name == "plain" {
					admin := "http://" + p.ip + ":4567"
					p.running.ready(t, http.DefaultClient, admin+"/metrics")
					// A new root key would be gone with the pod, and with it the data: see the second start.
					if answer, err := http.Post(admin+"/_godwit/keys/rotate-root", "", nil); err != nil || answer.StatusCode < http.StatusBadRequest {
						t.Errorf("the root key is rotated: %v, %v", answer, err)
					}
				}
				if status := p.end(t); status != 0 {
					t.Errorf("it ends with %d", status)
				}
			}
		})
	}
}

// certificate makes a Secret's directory with a certificate for an address.
func certificate(t *testing.T, address string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestChartRunsCluster starts the nodes of a cluster, each in a network of its own, and takes
// away the one that has the authority's key.
func TestChartRunsCluster(t *testing.T) {
	m := &machine{image: built(t), objects: rendered(t, "r", cluster), secrets: map[string]string{}, disks: map[string]string{}}
	var key accessKey
	m.secrets["the-keys"], key = initialised(t)
	m.secrets["the-cluster"] = filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.Command(binary, "cluster", "init", "--dir", m.secrets["the-cluster"], "--node", "r-godwit-0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := newNetwork(t, 3)
	var names strings.Builder
	names.WriteString("127.0.0.1 localhost\n")
	for i, address := range n.addresses {
		fmt.Fprintf(&names, "%s r-godwit-%d.r-godwit-nodes.there.svc r-godwit-%[2]d\n", address, i)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte(names.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(hosts, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	nodes := make([]*pod, 3)
	start := func(i int) {
		nodes[i] = m.run(t, m.objects.nodes(t, "r-godwit"), i, n.addresses[i], n.paths[i], hosts)
	}
	url := func(i int) string { return "http://" + nodes[i].ip + ":4566" }
	for i := range nodes {
		start(i)
	}
	for i := range nodes {
		nodes[i].ready(t)
	}
	apply(t, key, url(2))
	for i := range nodes {
		hasQueue(t, key, url(i))
	}
	if status := nodes[0].end(t); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	nodes[1].ready(t)
	hasQueue(t, key, url(1))
	start(0)
	nodes[0].ready(t)
	hasQueue(t, key, url(0))
}

// network is a bridge of this machine with namespaces behind it.
type network struct {
	addresses, paths []string
}

func newNetwork(t *testing.T, size int) (n network) {
	t.Helper()
	need(t, "ip")
	ip := func(args ...string) error {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	must := func(args ...string) {
		t.Helper()
		if err := ip(args...); err != nil {
			t.Fatal(err)
		}
	}
	began++
	bridge := fmt.Sprintf("gw%d-%d", os.Getpid()%100_000, began)
	if err := ip("link", "add", bridge, "type", "bridge"); err != nil {
		skip(t, "this machine makes no networks: "+err.Error())
	}
	t.Cleanup(func() { _ = ip("link", "del", bridge) })
	subnet := fmt.Sprintf("10.%d.%d.", 200+os.Getpid()%50, began)
	must("addr", "add", subnet+"1/24", "dev", bridge)
	must("link", "set", bridge, "up")
	for i := range size {
		name, link := fmt.Sprintf("%s-%d", bridge, i), fmt.Sprintf("%s%c", bridge, 'a'+i)
		must("netns", "add", name)
		t.Cleanup(func() { _ = ip("netns", "del", name) })
		must("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
		must("link", "set", link, "master", bridge, "up")
		address := fmt.Sprint(subnet, i+2)
		must("-n", name, "addr", "add", address+"/24", "dev", "eth0")
		must("-n", name, "link", "set", "eth0", "up")
		must("-n", name, "link", "set", "lo", "up")
		n.addresses, n.paths = append(n.addresses, address), append(n.paths, "/run/netns/"+name)
	}
	return n
}
