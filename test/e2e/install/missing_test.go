package install

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// If an installation fails, the error names what is missing on the machine and how to get it.
func TestAFailedInstallationReportsMissingPrograms(t *testing.T) {
	t.Parallel()
	index := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(index.Close)
	settings := []string{"NPM_CONFIG_REGISTRY=" + index.URL, "UV_DEFAULT_INDEX=" + index.URL + "/simple", "PIP_INDEX_URL=" + index.URL + "/simple", "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	for _, c := range []struct {
		name     string
		programs []string
		also     string // more directories in PATH
		more     []string
		what     object
		wantText string
	}{
		{"npm's certificate", []string{"npm", "node"}, "", nil, object{"npm": "left-pad"}, "set NODE_EXTRA_CA_CERTS to the PEM file"},
		{"uv's certificate", []string{"uv"}, ":/usr/bin", nil, object{"pypi": "left-pad"}, "set SSL_CERT_FILE to the PEM file"},
		{"pip's certificate", nil, ":/usr/bin", nil, object{"pypi": "left-pad"}, "set SSL_CERT_FILE to the PEM file"},
		{"uv without Python", []string{"uv"}, "", []string{"UV_PYTHON_INSTALL_MIRROR=http://127.0.0.1:1", "UV_HTTP_RETRIES=0"}, object{"pypi": "left-pad"}, "this machine has no Python, and uv could not fetch one; install Python 3.10 or newer"},
		{"nothing", nil, "", nil, object{"pypi": "left-pad"}, "python3 is needed to install left-pad and was not found: install Python 3.10 or newer, or uv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := harness.Serve(t, func(s *harness.Server) {
				s.Environ = slices.Concat(settings, c.more, []string{pathWith(t, c.programs...) + c.also})
			})
			if a := s.Do(t, "POST", "/v1/apps/install", c.what); a.Status != 500 || !strings.Contains(a.Body, c.wantText) {
				t.Errorf("%d %s, want %q", a.Status, a.Body, c.wantText)
			}
		})
	}
}
