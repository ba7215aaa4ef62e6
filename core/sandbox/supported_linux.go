package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// Supported is the highest level that this kernel can have, with the reason when it is not the highest.
// Whether namespaces can be made shows only when a shim is started in them; package process does that.
func Supported() (Level, string) {
	if _, err := newProgram(); err != nil {
		return LevelNone, err.Error()
	}
	if version := landlockVersion(); version < landlockABI {
		return LevelNone, fmt.Sprintf("the kernel has Landlock version %d and %d is needed (Linux 6.12, with landlock in its list of security modules)", version, landlockABI)
	}
	if limit, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil && strings.TrimSpace(string(limit)) == "0" {
		return LevelLandlock, "user namespaces are turned off (user.max_user_namespaces is 0)"
	}
	return LevelNamespaces, ""
}
