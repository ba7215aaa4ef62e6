package mpak

import "strings"

// The API's responses, reduced to the fields used here.
type (
	found struct {
		Bundles    []bundle `json:"bundles"`
		Total      int      `json:"total"`
		Pagination struct {
			HasMore bool `json:"has_more"`
		} `json:"pagination"`
	}

	bundle struct {
		Name               string `json:"name"`
		DisplayName        string `json:"display_name"`
		Description        string `json:"description"`
		LatestVersion      string `json:"latest_version"`
		CertificationLevel int    `json:"certification_level"`
	}

	version struct {
		Version   string     `json:"version"`
		Artifacts []artifact `json:"artifacts"`
	}

	artifact struct {
		Platform platform `json:"platform"`
		Digest   string   `json:"digest"` // sha256:<hex>
		Size     int64    `json:"size"`
	}

	platform struct {
		OS   string `json:"os"`
		Arch string `json:"arch"`
	}

	download struct {
		URL    string `json:"url"`
		Bundle struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"bundle"`
	}
)

// trust returns a trust score of 25 to 100 for the certification levels 1 to 4, or 0 for an unknown level.
func (b bundle) trust() int {
	if b.CertificationLevel < 1 || b.CertificationLevel > 4 {
		return 0
	}
	return 25 * b.CertificationLevel
}

// sum returns the digest in lower-case hex. A digest of another algorithm is returned unchanged, so it will match
// no file.
func (a artifact) sum() string {
	hex, ok := strings.CutPrefix(strings.ToLower(a.Digest), "sha256:")
	if !ok && len(a.Digest) == 64 {
		return strings.ToLower(a.Digest)
	}
	return hex
}

const anything = "any"

// platformOf translates a Go platform into mpak's terms. mpak's own terms become "", which only artifacts for any
// platform match.
func platformOf(goos, goarch string) platform {
	word := func(asked, of, is string) string {
		switch asked {
		case of:
			return is
		case is, anything:
			return ""
		}
		return asked
	}
	return platform{OS: word(goos, "windows", "win32"), Arch: word(goarch, "amd64", "x64")}
}

// choose returns the artifact for a platform: an exact match, or else one for any architecture, or else one for any
// platform.
func (v version) choose(p platform) (artifact, bool) {
	for _, want := range []platform{p, {p.OS, anything}, {anything, anything}} {
		for _, a := range v.Artifacts {
			if a.Platform == want {
				return a, true
			}
		}
	}
	return artifact{}, false
}
