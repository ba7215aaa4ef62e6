package source

import (
	"strings"
	"testing"
)

// The messages are from Debian's python3, pip 24, npm 10 and uv 0.9.
func TestMissingToolsOfAPackageManagerAreRecognised(t *testing.T) {
	for output, want := range map[string]string{
		"The virtual environment was not created successfully because ensurepip is not\navailable.": "apt-get install python3-venv",
		"ensurepip is not available.  On Debian/Ubuntu systems, you need":                           "apt-get install python3-venv",
		"/usr/bin/python3: No module named venv":                                                    "apt-get install python3-venv",
		"ModuleNotFoundError: No module named 'pip'":                                                "python3-pip",
		"npm error code UNABLE_TO_VERIFY_LEAF_SIGNATURE":                                            "NODE_EXTRA_CA_CERTS",
		"npm error code SELF_SIGNED_CERT_IN_CHAIN":                                                  "NODE_EXTRA_CA_CERTS",
		"cause: invalid peer certificate: UnknownIssuer":                                            "SSL_CERT_FILE",
		"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate":       "SSL_CERT_FILE",
		"npm error code E404":                               "",
		"ModuleNotFoundError: No module named 'pipedream'":  "",
		"No solution found when resolving dependencies: no": "",
	} {
		if got := remedyFor(output); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q gives %q, want %q", output, got, want)
		}
	}
}
