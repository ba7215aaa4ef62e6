// Package helm checks the Helm chart. It lints the chart, renders it with several sets of values, and decodes
// every object strictly into the type of k8s.io/api that the object names. A misspelled or misplaced field
// therefore fails.
package helm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm/ropewalk"

// cluster is what several servers need.
const cluster = `
replicas: 3
config:
  http: {host: 0.0.0.0, baseUrl: "https://tools.example.com", shutdownDelaySeconds: 5}
  storage: {url: "postgres://ropewalk:${env:PGPASSWORD}@db/ropewalk"}
  sessionStore: {adapter: redis, url: "redis://redis:6379/0"}
environmentFrom: [ropewalk]
`

const everything = cluster + `
imagePullSecrets: [{name: registry}]
environment: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: ca, secret: {secretName: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/ca, readOnly: true}]
sandbox: {level: namespaces}
service: {type: LoadBalancer, annotations: {a: b}}
ingress: {enabled: true, className: nginx, tlsSecret: tls}
persistence: {storageClass: fast}
serviceAccount: {annotations: {a: b}}
podAnnotations: {a: b}
nodeSelector: {a: b}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
networkPolicy: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}
metrics: {enabled: true, serviceMonitor: {enabled: true, labels: {release: prometheus}}}
`

func TestTheChartHasNothingToLint(t *testing.T) {
	for name, values := range map[string]string{"defaults": "{}", "cluster": cluster, "everything": everything} {
		for _, m := range lint.All(chartDir, parse(t, values), "ropewalk", true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestEveryObjectInTheChartIsValid(t *testing.T) {
	for name, values := range map[string]string{"defaults": "{}", "cluster": cluster, "everything": everything} {
		objects, monitors := decode(t, render(t, values))
		if len(objects) < 5 {
			t.Errorf("%s: only %d objects were rendered", name, len(objects))
		}
		if want := strings.Count(values, "serviceMonitor:"); monitors != want {
			t.Errorf("%s: %d service monitors, want %d", name, monitors, want)
		}
	}
}

func TestPodsRunWithoutPrivilegesAndWithoutAToken(t *testing.T) {
	objects, _ := decode(t, render(t, everything))
	pods := 0
	for _, o := range objects {
		var spec corev1.PodSpec
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			spec = o.Spec.Template.Spec
			if *o.Spec.Replicas != 3 || spec.HostUsers == nil || *spec.HostUsers || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeLocalhost {
				t.Errorf("the level namespaces needs user namespaces and its own seccomp profile: %+v", spec.SecurityContext)
			}
		case *appsv1.Deployment:
			spec = o.Spec.Template.Spec
		default:
			continue
		}
		pods++
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || !*spec.SecurityContext.RunAsNonRoot {
			t.Errorf("a pod runs as root or has a token: %+v", spec.SecurityContext)
		}
		for _, c := range spec.Containers {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || c.LivenessProbe == nil || c.ReadinessProbe == nil {
				t.Errorf("container %s: %+v", c.Name, s)
			}
		}
	}
	if pods != 2 {
		t.Errorf("%d kinds of pod, want the servers and the proxy", pods)
	}
}

func TestTheProxySendsASessionToItsServer(t *testing.T) {
	objects, _ := decode(t, render(t, cluster))
	services := map[string]bool{}
	var proxy string
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			services[o.Name] = true
		case *corev1.ConfigMap:
			proxy += o.Data["default.conf"]
			if server := o.Data["ropewalk.yaml"]; server != "" && !strings.Contains(server, "replica: ${env:REPLICA}") {
				t.Errorf("the servers have no names:\n%s", server)
			}
		}
	}
	for _, want := range []string{"~^2- ropewalk_2;", "server ropewalk-2:27247 max_fails=0;", "server ropewalk-0:27247 backup;", "proxy_buffering off;"} {
		if !strings.Contains(proxy, want) {
			t.Errorf("the proxy's configuration lacks %q:\n%s", want, proxy)
		}
	}
	for _, want := range []string{"ropewalk", "ropewalk-servers", "ropewalk-0", "ropewalk-1", "ropewalk-2"} {
		if !services[want] {
			t.Errorf("there is no service %s", want)
		}
	}
}

func TestSeveralServersWithoutASharedStateAreRefused(t *testing.T) {
	for _, values := range []string{"replicas: 2", "{replicas: 2, config: {storage: {url: postgres://db/x}}}"} {
		if _, err := tryRender(t, values); err == nil || !strings.Contains(err.Error(), "replicas is more than 1") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestTheNotesHaveTheCommandForAMissingKey(t *testing.T) {
	const command = `kubectl -n default create secret generic ropewalk-key --from-literal=ROPEWALK_STORAGE_KEY=`
	for values, want := range map[string]bool{"{}": true, cluster: true, "config: {storage: {keyFile: /etc/key}}": false} {
		if notes := render(t, values)["ropewalk/templates/NOTES.txt"]; strings.Contains(notes, command) != want {
			t.Errorf("%s: the command is in the notes: %t, want %t\n%s", values, !want, want, notes)
		}
	}
}

func TestAMisspelledValueIsRefused(t *testing.T) {
	if _, err := tryRender(t, "{ingres: {enabled: true}}"); err == nil || !strings.Contains(err.Error(), "ingres") {
		t.Errorf("the error is %v", err)
	}
}

func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func tryRender(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "ropewalk", Namespace: "default", IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, parse(t, values), release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

func render(t *testing.T, values string) map[string]string {
	t.Helper()
	files, err := tryRender(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// decode decodes the objects strictly. It counts service monitors: their type is not in k8s.io/api.
func decode(t *testing.T, files map[string]string) (objects []runtime.Object, monitors int) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(strings.TrimPrefix(document, "---")) == "" {
				continue
			}
			if strings.Contains(document, "kind: ServiceMonitor") {
				monitors++
				continue
			}
			o, _, err := decoder.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, document)
				continue
			}
			objects = append(objects, o)
		}
	}
	return objects, monitors
}

func TestTheSeccompProfileIsJSON(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "files/seccomp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		DefaultAction string `json:"defaultAction"`
		Syscalls      []struct{ Names []string }
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), &map[string]any{}); err != nil {
		t.Error(err)
	}
	if err := yaml.Unmarshal(text, &profile); err != nil || profile.DefaultAction != "SCMP_ACT_ALLOW" || len(profile.Syscalls) == 0 {
		t.Errorf("%v %+v", err, profile)
	}
	for _, refused := range profile.Syscalls {
		for _, name := range refused.Names {
			switch name {
			case "clone", "clone3", "unshare", "mount", "umount2", "pivot_root", "landlock_create_ruleset", "seccomp":
				t.Errorf("the profile refuses %s, which the sandbox needs", name)
			}
		}
	}
}
