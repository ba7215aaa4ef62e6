package install

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/Masterminds/semver/v3"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// checkReplaced refuses to replace a plugin by an older one, and one that was signed by one that is not.
// It returns the version that is replaced, "" when it is unknown.
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
		return "", fmt.Errorf("%s is signed, and what would replace it is not; give the key that signed it with --key or in plugins.trustedKeys, or run `ropewalk plugin remove %s` first", name, name)
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

// installedVersion asks a plugin that was put into the folder by hand. A file that was not accepted is not
// started.
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

// checkUpgrade fails when version is older than before, or cannot be compared with it.
func checkUpgrade(name, before, version string) error {
	old, _ := semver.NewVersion(before)
	if old == nil { // such as a development build: everything may replace it
		return nil
	}
	fresh, _ := semver.NewVersion(version)
	if fresh == nil {
		return fmt.Errorf("%s is installed in version %s, and %q is not a version that can be compared with it; give --allow-downgrade to install it all the same", name, before, version)
	}
	if fresh.LessThan(old) {
		return fmt.Errorf("%s is installed in version %s, and %s is older; give --allow-downgrade to go back", name, before, version)
	}
	return nil
}

// sameVersion compares what a list says with what a plugin says: 1.2.0 and v1.2.0 are the same.
func sameVersion(a, b string) bool {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return va.Equal(vb) && va.Metadata() == vb.Metadata()
}
