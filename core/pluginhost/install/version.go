package install

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/Masterminds/semver/v3"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// checkReplaced returns an error if a plugin would be replaced with an older one, or a signed one with an
// unsigned one. It returns the version that is replaced, or "" if it is unknown.
func (i *Installer) checkReplaced(ctx context.Context, name, version, signer string, allowDowngrade bool) (string, error) {
	records, err := i.lock().Read()
	if err != nil {
		return "", err
	}
	record, known := records[name]
	if !known {
		return "", nil
	}
	if record.Signer != "" && signer == "" {
		return "", fmt.Errorf("%s is signed, but its replacement is not; add the key that signed it with --key or to plugins.trustedKeys, or run `ropewalk plugin remove %s` first", name, name)
	}
	before := record.Version
	if before == "" {
		before = i.installedVersion(ctx, name, record)
	}
	if before == "" || allowDowngrade {
		return before, nil
	}
	return before, checkUpgrade(name, before, version)
}

// installedVersion asks a plugin that was put into the directory by hand for its version. It does not start a
// file that was not accepted.
func (i *Installer) installedVersion(ctx context.Context, name string, record pluginhost.Locked) string {
	path := filepath.Join(i.lock().Dir(), name)
	if sum, err := pluginhost.HashFile(path); err != nil || sum != record.SHA256 {
		return ""
	}
	who, err := i.Identify(ctx, path)
	if err != nil {
		return ""
	}
	return who.Version
}

// checkUpgrade returns an error if version is older than before, or cannot be compared with it.
func checkUpgrade(name, before, version string) error {
	old, _ := semver.NewVersion(before)
	if old == nil { // for example a development build: anything may replace it
		return nil
	}
	fresh, _ := semver.NewVersion(version)
	if fresh == nil {
		return fmt.Errorf("version %s of %s is installed, and %q is not a version that can be compared with it; use --allow-downgrade to install it anyway", before, name, version)
	}
	if fresh.LessThan(old) {
		return fmt.Errorf("version %s of %s is installed, and %s is older; use --allow-downgrade to install it anyway", before, name, version)
	}
	return nil
}

// sameVersion compares a list's version with the plugin's own: 1.2.0 and v1.2.0 are the same.
func sameVersion(a, b string) bool {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return va.Equal(vb) && va.Metadata() == vb.Metadata()
}
