package deployed_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const chart = "../../deploy/helm/godwit"

type values = map[string]any

// The values of the tests: what a single node takes at least, and a cluster.
var (
	single  = values{"keys": values{"secretName": "the-keys"}, "allowPlainHTTP": true}
	cluster = with(single, values{"replicas": 3, "cluster": values{"secretName": "the-cluster"}})
	secure  = values{"keys": values{"secretName": "the-keys"}, "tls": values{"secretName": "the-certificate"}}
)

func with(base, more values) values {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

// objects is what a chart makes, by kinds and names.
type objects map[string]metav1.Object

// template renders the chart as helm template does, and takes apart each object by the types of
// Kubernetes, none of which may have a field that it does not know, or one twice.
func template(release string, v values) (objects, error) {
	c, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	v, err = plain(v)
	if err != nil {
		return nil, err
	}
	rendered, err := util.ToRenderValues(c, v, common.ReleaseOptions{Name: release, Namespace: "there", IsInstall: true, Revision: 1}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, rendered)
	if err != nil {
		return nil, err
	}
	all := objects{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			var o metav1.Object
			switch kind.APIVersion + " " + kind.Kind {
			case " ": // nothing is made of it
				continue
			case "apps/v1 StatefulSet":
				o = &appsv1.StatefulSet{}
			case "v1 Service":
				o = &corev1.Service{}
			case "v1 ConfigMap":
				o = &corev1.ConfigMap{}
			case "v1 ServiceAccount":
				o = &corev1.ServiceAccount{}
			case "policy/v1 PodDisruptionBudget":
				o = &policyv1.PodDisruptionBudget{}
			case "networking.k8s.io/v1 NetworkPolicy":
				o = &networkingv1.NetworkPolicy{}
			case "monitoring.coreos.com/v1 ServiceMonitor":
				o = &monitoringv1.ServiceMonitor{}
			default:
				return nil, fmt.Errorf("%s makes a %s of %s", name, kind.Kind, kind.APIVersion)
			}
			if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			key := kind.Kind + " " + o.GetName()
			if all[key] != nil {
				return nil, fmt.Errorf("there are two of %s", key)
			}
			all[key] = o
		}
	}
	return all, nil
}

// plain is what a file of values would be read as.
func plain(v values) (read values, err error) {
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil, err
	}
	return loader.LoadValues(bytes.NewReader(text))
}

func rendered(t *testing.T, release string, v values) objects {
	t.Helper()
	all, err := template(release, v)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (o objects) nodes(t *testing.T, name string) *appsv1.StatefulSet {
	t.Helper()
	s, ok := o["StatefulSet "+name].(*appsv1.StatefulSet)
	if !ok {
		t.Fatalf("there is no StatefulSet %s in %v", name, slices.Sorted(maps.Keys(o)))
	}
	return s
}

func (o objects) settings(t *testing.T, name string) (v values) {
	t.Helper()
	c, ok := o["ConfigMap "+name].(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("there is no ConfigMap %s in %v", name, slices.Sorted(maps.Keys(o)))
	}
	if err := yaml.UnmarshalStrict([]byte(c.Data["godwit.yaml"]), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestChartLint(t *testing.T) {
	for name, v := range map[string]values{"single": single, "cluster": cluster, "secure": secure} {
		read, err := plain(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(chart, read, "there").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestChartMakes(t *testing.T) {
	always := []string{"ConfigMap r-godwit", "Service r-godwit", "Service r-godwit-nodes", "ServiceAccount r-godwit", "StatefulSet r-godwit"}
	for name, c := range map[string]struct {
		values values
		more   []string
	}{
		"single":  {single, nil},
		"secure":  {secure, nil},
		"cluster": {cluster, []string{"PodDisruptionBudget r-godwit"}},
		"all of it": {with(single, values{
			"admin": values{"enabled": true}, "networkPolicy": values{"enabled": true}, "serviceMonitor": values{"enabled": true, "labels": values{"release": "p"}},
			"image":            values{"digest": "sha256:" + strings.Repeat("a", 64)},
			"imagePullSecrets": []any{values{"name": "s"}}, "priorityClassName": "high", "nodeSelector": values{"disk": "fast"},
			"tolerations": []any{values{"operator": "Exists"}}, "podAnnotations": values{"a": "b"}, "podLabels": values{"c": "d"},
			"affinity": values{"nodeAffinity": values{}}, "storage": values{"className": "fast", "annotations": values{"e": "f"}},
			"service": values{"annotations": values{"g": "h"}, "type": "LoadBalancer"}, "serviceAccount": values{"annotations": values{"i": "j"}},
		}), []string{"NetworkPolicy r-godwit", "ServiceMonitor r-godwit"}},
		"a cluster with a policy": {
			with(cluster, values{"networkPolicy": values{"enabled": true, "from": []any{values{"podSelector": values{}}}}, "replicas": 5, "admin": values{"enabled": true}, "serviceMonitor": values{"enabled": true}}),
			[]string{"NetworkPolicy r-godwit", "PodDisruptionBudget r-godwit", "ServiceMonitor r-godwit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := rendered(t, "r", c.values)
			if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(slices.Values(append(slices.Clone(always), c.more...))); !slices.Equal(got, want) {
				t.Errorf("it makes %v, want %v", got, want)
			}
			s := all.nodes(t, "r-godwit")
			for key, o := range all { // what selects the pods, and nothing else
				var selects map[string]string
				switch o := o.(type) {
				case *corev1.Service:
					selects = o.Spec.Selector
				case *policyv1.PodDisruptionBudget:
					selects = o.Spec.Selector.MatchLabels
				case *networkingv1.NetworkPolicy:
					selects = o.Spec.PodSelector.MatchLabels
				case *appsv1.StatefulSet:
					selects = o.Spec.Selector.MatchLabels
				default:
					continue
				}
				if len(selects) == 0 || !within(selects, s.Spec.Template.Labels) || selects["app.kubernetes.io/instance"] != "r" {
					t.Errorf("%s selects %v of pods with %v", key, selects, s.Spec.Template.Labels)
				}
			}
			if s.Spec.ServiceName != "r-godwit-nodes" {
				t.Errorf("the pods have names of the service %s", s.Spec.ServiceName)
			}
			restricted(t, &s.Spec.Template.Spec)
			mounted(t, s)
		})
	}
}

// TestJobs holds the names of Prometheus's jobs: the rules of deploy/prometheus go by them, and the
// operator of Prometheus would take the name of the service.
func TestJobs(t *testing.T) {
	both := values{"admin": values{"enabled": true}, "serviceMonitor": values{"enabled": true}}
	for name, c := range map[string]struct {
		values values
		want   map[string]string // job by path
	}{
		"single":  {with(single, both), map[string]string{"/metrics": "godwit"}},
		"cluster": {with(cluster, both), map[string]string{"/metrics": "godwit", "/_godwit/v1/cluster/metrics": "godwit-cluster"}},
	} {
		got := map[string]string{}
		for _, e := range rendered(t, "r", c.values)["ServiceMonitor r-godwit"].(*monitoringv1.ServiceMonitor).Spec.Endpoints {
			got[e.Path] = ""
			for _, r := range e.RelabelConfigs {
				if r.TargetLabel == "job" && r.Replacement != nil {
					got[e.Path] = *r.Replacement
				}
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: jobs %v, want %v", name, got, c.want)
		}
	}
}

// within reports that all of a is in b.
func within(a, b map[string]string) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// restricted holds a pod against the restricted standard of Kubernetes' Pod Security, and more.
func restricted(t *testing.T, p *corev1.PodSpec) {
	t.Helper()
	pod := p.SecurityContext
	if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 ||
		pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context: %v", pod)
	}
	if p.HostNetwork || p.HostPID || p.HostIPC || p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken || p.EnableServiceLinks == nil || *p.EnableServiceLinks {
		t.Error("the pod has of the machine, or of Kubernetes, what it does not need")
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) != 0 || s.Privileged != nil {
			t.Errorf("%s's security context: %v", c.Name, s)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s's resources: %v", c.Name, c.Resources)
		}
	}
	for _, v := range p.Volumes {
		if v.HostPath != nil {
			t.Errorf("%s is a directory of the machine", v.Name)
		}
	}
}

// mounted holds that what is mounted is there, what is there is mounted, and that ports which
// are named are.
func mounted(t *testing.T, s *appsv1.StatefulSet) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range s.Spec.Template.Spec.Volumes {
		volumes[v.Name] = false
	}
	for _, c := range s.Spec.VolumeClaimTemplates {
		volumes[c.Name] = false
	}
	for _, c := range slices.Concat(s.Spec.Template.Spec.InitContainers, s.Spec.Template.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			if _, ok := volumes[m.Name]; !ok {
				t.Errorf("%s mounts %s, which there is none of", c.Name, m.Name)
			}
			volumes[m.Name] = true
		}
	}
	for name, used := range volumes {
		if !used {
			t.Errorf("nobody mounts %s", name)
		}
	}
	server := &s.Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{server.StartupProbe, server.ReadinessProbe, server.LivenessProbe} {
		port := ""
		if probe.HTTPGet != nil {
			port = probe.HTTPGet.Port.StrVal
		} else {
			port = probe.TCPSocket.Port.StrVal
		}
		if !slices.ContainsFunc(server.Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("a probe asks at %q", port)
		}
	}
}

// What cannot be is refused, with a word on what to do.
func TestChartRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		want   string
	}{
		"no keys":                      {values{"allowPlainHTTP": true}, "godwit init --dir keys --data /var/lib/godwit/data"},
		"no TLS":                       {values{"keys": single["keys"]}, "tls.secretName is missing"},
		"a cluster without authority":  {with(single, values{"replicas": 3}), "godwit cluster init --dir cluster --node r-godwit-0"},
		"an authority for nobody":      {with(cluster, values{"replicas": 1}), "replicas is 1"},
		"an even number":               {with(cluster, values{"replicas": 2}), "/replicas"},
		"metrics that nobody may read": {with(single, values{"serviceMonitor": values{"enabled": true}}), "takes admin.enabled"},
		"a misspelt value":             {with(single, values{"replica": 1}), "replica"},
		"a setting of several values":  {with(single, values{"settings": values{"cors-origins": []any{"a", "b"}}}), "cors-origins"},
		"a setting of the chart's":     {with(single, values{"settings": values{"data": "/tmp"}}), "data"},
		"a stop that cuts off":         {with(single, values{"terminationGracePeriodSeconds": 5}), "terminationGracePeriodSeconds"},
	} {
		if _, err := template("r", c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChartValues(t *testing.T) {
	one, three := rendered(t, "mine", single), rendered(t, "my-godwit", cluster)
	if s := one.nodes(t, "mine-godwit"); *s.Spec.Replicas != 1 || s.Spec.Template.Spec.Containers[0].Image != "godwit:0.1.0-dev" {
		t.Errorf("%d nodes of %s", *s.Spec.Replicas, s.Spec.Template.Spec.Containers[0].Image)
	}
	if s := three.nodes(t, "my-godwit"); *s.Spec.Replicas != 3 || s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement ||
		len(s.Spec.Template.Spec.TopologySpreadConstraints) != 1 || len(s.Spec.Template.Spec.InitContainers) != 2 {
		t.Errorf("the cluster's nodes: %v", s.Spec)
	}
	peers := "my-godwit-0=my-godwit-0.my-godwit-nodes.there.svc:4570,my-godwit-1=my-godwit-1.my-godwit-nodes.there.svc:4570,my-godwit-2=my-godwit-2.my-godwit-nodes.there.svc:4570"
	if got := three.settings(t, "my-godwit")["cluster-peers"]; got != peers {
		t.Errorf("the nodes are %v", got)
	}
	if nodes := three["Service my-godwit-nodes"].(*corev1.Service); nodes.Spec.ClusterIP != corev1.ClusterIPNone || !nodes.Spec.PublishNotReadyAddresses || len(nodes.Spec.Ports) != 3 {
		t.Errorf("the nodes' names: %v", nodes.Spec)
	}
	if b := three["PodDisruptionBudget my-godwit"].(*policyv1.PodDisruptionBudget); b.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%s pods may be missing", b.Spec.MaxUnavailable)
	}
	for name, c := range map[string]struct {
		of     objects
		scheme corev1.URIScheme
		plain  any
		cert   any
	}{
		"plain":  {one, corev1.URISchemeHTTP, true, nil},
		"secure": {rendered(t, "mine", secure), corev1.URISchemeHTTPS, nil, "/run/tls/tls.crt"},
	} {
		probe := c.of.nodes(t, "mine-godwit").Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet
		if probe.Scheme != c.scheme || probe.Path != "/_godwit/ready" {
			t.Errorf("%s: it is asked by %s for %s", name, probe.Scheme, probe.Path)
		}
		if s := c.of.settings(t, "mine-godwit"); s["allow-plain-http"] != c.plain || s["tls-cert"] != c.cert {
			t.Errorf("%s: the settings are %v", name, s)
		}
	}
	more := rendered(t, "mine", with(single, values{"settings": values{"account": "123456789012", "log-format": "json"}, "image": values{"repository": "r/g", "tag": "1"}}))
	if s := more.settings(t, "mine-godwit"); s["account"] != "123456789012" || s["log-format"] != "json" || s["root-key"] != "/run/godwit/keys/root.key" {
		t.Errorf("the settings are %v", s)
	}
	before, after := one.nodes(t, "mine-godwit").Spec.Template, more.nodes(t, "mine-godwit").Spec.Template
	if before.Annotations["godwit.dev/settings"] == after.Annotations["godwit.dev/settings"] {
		t.Error("other settings are the same pods")
	}
	if after.Spec.Containers[0].Image != "r/g:1" {
		t.Errorf("the image is %s", after.Spec.Containers[0].Image)
	}
}

// The program knows every setting that the chart makes: it refuses those that it does not know,
// and the files are what it misses.
func TestChartSettingsAreKnown(t *testing.T) {
	missing := regexp.MustCompile(`no such file|is not there|there is no access key`)
	for name, v := range map[string]values{"single": with(single, values{"admin": values{"enabled": true}}), "cluster": with(cluster, values{"admin": values{"enabled": true}}), "secure": secure} {
		all := rendered(t, "r", v)
		file := filepath.Join(t.TempDir(), "godwit.yaml")
		if err := os.WriteFile(file, []byte(all["ConfigMap r-godwit"].(*corev1.ConfigMap).Data["godwit.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		pod := all.nodes(t, "r-godwit").Spec.Template.Spec
		args := []string{}
		for _, arg := range pod.Containers[0].Args {
			args = append(args, strings.NewReplacer("/etc/godwit/godwit.yaml", file, "$(POD_NAME)", "r-godwit-0", "$(POD_IP)", "10.1.2.3").Replace(arg))
		}
		out, err := exec.Command(binary, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "godwit serve does not start like this:\n") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if flag, rest, problem := strings.Cut(strings.TrimSpace(line), ": "); problem && strings.HasPrefix(flag, "--") && !missing.MatchString(rest) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
