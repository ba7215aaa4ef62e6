package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
)

// form returns a multipart upload of the given parts, in order.
func form(t *testing.T, parts ...[2]string) call {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, part := range parts {
		if err := w.WriteField(part[0], part[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return call{method: "POST", path: "/v1/apps/upload", body: b.String(), header: map[string]string{"Content-Type": w.FormDataContentType()}}
}

func TestAnUploadCanIncludeSettings(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, form(t, [2]string{"settings", `{"serverName":"calc","env":{"API_KEY":"s3cret"}}`}, [2]string{"file", "the bundle"}))
	if r.StatusCode != 200 || !strings.Contains(r.body, `"bundleName":"the bundle"`) {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if got := h.apps.uploaded; got.ServerName != "calc" || got.Env["API_KEY"].Reveal() != "s3cret" {
		t.Errorf("installed with %q, %v", got.ServerName, got.Env)
	}
	for name, c := range map[string]call{
		"no file":                    form(t, [2]string{"settings", `{}`}),
		"settings after file":        form(t, [2]string{"file", "x"}, [2]string{"settings", `{"serverName":"late"}`}),
		"settings that are not JSON": form(t, [2]string{"settings", `{`}, [2]string{"file", "x"}),
		"not a form":                 {method: "POST", path: "/v1/apps/upload", body: "x", header: map[string]string{"Content-Type": "multipart/form-data; boundary=b"}},
	} {
		if r := h.do(t, c); r.StatusCode != 400 || r.code() != "bad_request" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
}

func TestUnknownPartsInAnUploadAreIgnored(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, form(t, [2]string{"icon", "x"}, [2]string{"file", "the bundle"}, [2]string{"note", "y"}))
	if r.StatusCode != 200 || !strings.Contains(r.body, `"bundleName":"the bundle"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// repeated yields n zero bytes without storing them.
type repeated struct{ n int }

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n)
	clear(p[:n])
	r.n -= n
	return n, nil
}

func (h *testServer) upload(t *testing.T, size int, declared int64, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+"/v1/apps/upload", &repeated{n: size})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = declared
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestAnUploadIsStreamedInsteadOfKeptInMemory(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.discardUploads = true
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status := h.upload(t, 60<<20, 60<<20, h.access.key); status != 200 {
		t.Fatalf("status %d", status)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated for an upload of 60 MiB", used)
	}
}

func TestTheDeploymentProxiesAcceptTheLargestBodies(t *testing.T) {
	limit := fmt.Sprintf("%dm", appapi.MaxUpload>>20)
	for file, want := range map[string]string{
		"compose/nginx.conf": "client_max_body_size " + limit + ";", "helm/ropewalk/templates/proxy.yaml": "client_max_body_size " + limit + ";",
		"helm/ropewalk/values.yaml": "proxy-body-size: " + limit + "\n",
	} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, %q is missing", file, err, want)
		}
	}
}

func TestAnOversizedUploadIsRefused(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.discardUploads = true
	for name, declared := range map[string]int64{"declared": appapi.MaxUpload + 1, "chunked": -1} {
		if status := h.upload(t, appapi.MaxUpload+1, declared, h.access.key); status != 413 {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

func TestARefusedUploadsBodyIsNotRead(t *testing.T) {
	h := open(t, newAccess(), nil)
	if status := h.upload(t, 1<<20, 1<<20, "wrong-key"); status != 401 {
		t.Errorf("status %d", status)
	}
	if h.apps.uploads != 0 {
		t.Errorf("the manager was called")
	}
}
