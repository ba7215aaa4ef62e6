package directory

import (
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/plugins"
)

// Settings are the registry's settings.
type Settings struct {
	// Dir is the absolute path of the folder. Folders inside it are ignored.
	Dir string `json:"dir"`
	// TrustScore is the trust score, 0 to 100, that the operator gives to everything in the folder. The default is 0.
	TrustScore int `json:"trustScore"`
}

// Check implements plugins.Checker.
func (s *Settings) Check(problems *plugins.ConfigError) {
	switch info, err := os.Stat(s.Dir); {
	case !filepath.IsAbs(s.Dir):
		problems.Add("dir", "must be the absolute path of a folder of .mcpb files")
	case err != nil:
		problems.Add("dir", "cannot be read: %v", err)
	case !info.IsDir():
		problems.Add("dir", "is not a folder")
	}
	if s.TrustScore < 0 || s.TrustScore > 100 {
		problems.Add("trustScore", "must be 0 to 100")
	}
}
