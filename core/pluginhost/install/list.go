package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

const maxList = 8 << 20 // bytes of a list of plugins

// list is a list of plugins, as configured in plugins.registries.
type list struct {
	Plugins map[string]struct { // by name, such as auth-okta
		Versions map[string]map[string]listedFile `json:"versions"` // by version and platform, such as linux/amd64
	} `json:"plugins"`
}

// listedFile is the file for one version and platform.
type listedFile struct {
	URL    string `json:"url"` // an executable or an archive; relative to the list's own URL
	SHA256 string `json:"sha256"`
}

// fetchListed fetches the plugin from the first list that contains its name.
func (i *Installer) fetchListed(ctx context.Context, source, staging string) (artifact, error) {
	name, version, _ := strings.Cut(source, "@")
	kind, known := pluginhost.KindOf(name)
	if !known || !lockedName.MatchString(name) {
		return artifact{}, fmt.Errorf("there is no file %s; a name in plugins.registries has the form <kind>-<name>, such as auth-okta or auth-okta@1.2.0", source)
	}
	if len(i.Settings.Registries) == 0 {
		return artifact{}, fmt.Errorf("there is no file %s, and plugins.registries is empty, so the name cannot be looked up", source)
	}
	for _, address := range i.Settings.Registries {
		l, err := readList(ctx, address)
		if err != nil {
			return artifact{}, fmt.Errorf("plugins.registries: %w", err)
		}
		if _, has := l.Plugins[name]; !has {
			continue
		}
		version, file, err := l.find(name, version)
		if err != nil {
			return artifact{}, fmt.Errorf("%s: %w", publicName(address), err)
		}
		a, err := fetchFrom(ctx, address, file, staging)
		if err != nil {
			return artifact{}, err
		}
		a.sums = append(a.sums, sum{file.SHA256, publicName(address)})
		a.kind, a.adapter, a.version = kind, strings.TrimPrefix(name, string(kind)+"-"), version
		return a, nil
	}
	return artifact{}, fmt.Errorf("no list in plugins.registries contains a plugin named %q", name)
}

// find returns this platform's file for a version, or for the newest release if wanted is empty.
func (l list) find(name, wanted string) (version string, file listedFile, err error) {
	versions := l.Plugins[name].Versions
	var newest *semver.Version
	for text := range versions {
		v, err := semver.NewVersion(text)
		if err != nil {
			return "", file, fmt.Errorf("%s: %q is not a version", name, text)
		}
		if wanted == "" && v.Prerelease() == "" && (newest == nil || newest.LessThan(v)) || wanted != "" && sameVersion(wanted, text) {
			newest, version = v, text
		}
	}
	if newest == nil {
		return "", file, fmt.Errorf("%s has no version %s", name, wanted)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	file, ok := versions[version][platform]
	if !ok {
		var others []string
		for other := range versions[version] {
			others = append(others, other)
		}
		slices.Sort(others)
		return "", file, fmt.Errorf("%s %s is not available for %s, only for %s", name, version, platform, strings.Join(others, ", "))
	}
	if !hexSum.MatchString(file.SHA256) {
		return "", file, fmt.Errorf("%s %s has no sha256 for %s; report it to the maintainer of the list", name, version, platform)
	}
	return version, file, nil
}

// fetchFrom fetches a file named in a list. A list on the web may refer to URLs; a list on disk may also refer to
// files in its own directory.
func fetchFrom(ctx context.Context, address string, file listedFile, staging string) (artifact, error) {
	if strings.Contains(address, "://") {
		base, err := parseURL(address)
		if err != nil {
			return artifact{}, err
		}
		ref, err := url.Parse(file.URL)
		if err != nil || file.URL == "" {
			return artifact{}, fmt.Errorf("%s: %q is not a URL", shown(base), file.URL)
		}
		to := base.ResolveReference(ref)
		if err := checkFollowed(base, to); err != nil {
			return artifact{}, err
		}
		return fetchURL(ctx, to.String(), staging, true)
	}
	if strings.Contains(file.URL, "://") {
		return fetchURL(ctx, file.URL, staging, true)
	}
	if !filepath.IsLocal(filepath.FromSlash(file.URL)) {
		return artifact{}, fmt.Errorf("%s points to %q, outside its own directory", address, file.URL)
	}
	return fetchFile(filepath.Join(filepath.Dir(address), filepath.FromSlash(file.URL)), staging)
}

func readList(ctx context.Context, address string) (l list, err error) {
	var content io.ReadCloser
	if strings.Contains(address, "://") {
		if content, err = getList(ctx, address); err != nil {
			return l, err
		}
	} else if content, err = os.Open(address); err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(content, maxList+1))
	if err != nil {
		return l, fmt.Errorf("%s is incomplete: %w; try again", publicName(address), err)
	}
	if len(raw) > maxList {
		return l, fmt.Errorf("%s is larger than %d MiB", publicName(address), maxList>>20)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, fmt.Errorf("%s is not a list of plugins: %w", publicName(address), err)
	}
	return l, nil
}

func getList(ctx context.Context, address string) (io.ReadCloser, error) {
	parsed, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	res, err := get(ctx, newClient(), parsed)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s returned %s", shown(parsed), res.Status), res.Body.Close())
	}
	return res.Body, nil
}

// publicName returns a list's address without parts that may be secret.
func publicName(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		return shown(parsed)
	}
	return address
}
