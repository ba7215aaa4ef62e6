package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxRedirects    = 10
	downloadTimeout = 15 * time.Minute
	responseTimeout = 30 * time.Second
)

// fetchURL downloads a file, its signature and its checksum. checksum reports whether another checksum is
// known, which would show whether the download is complete.
func fetchURL(ctx context.Context, source, staging string, checksum bool) (artifact, error) {
	address, err := parseURL(source)
	if err != nil {
		return artifact{}, err
	}
	a := artifact{source: shown(address), path: filepath.Join(staging, fileName(address))}
	client := newClient()
	if text, err := download(ctx, client, companion(address, ".sha256")); err != nil {
		return artifact{}, err
	} else if err := a.addSums(text, "its .sha256 file"); err != nil {
		return artifact{}, err
	}
	if a.signature, err = download(ctx, client, companion(address, ".minisig")); err != nil {
		return artifact{}, err
	}
	res, err := get(ctx, client, address)
	if err != nil {
		return artifact{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return artifact{}, fmt.Errorf("%s returned %s; check the address", a.source, res.Status)
	}
	if endless := res.ContentLength < 0 && res.ProtoMajor == 1 && len(res.TransferEncoding) == 0; endless && !checksum && len(a.sums) == 0 && a.signature == nil {
		return artifact{}, fmt.Errorf("the server for %s does not report the file's length, so a partial download would go unnoticed; pass its checksum with --sha256", a.source)
	}
	return a, writeFile(a.path, res.Body, a.source)
}

// parseURL requires https, except for loopback addresses.
func parseURL(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return nil, errors.New("the source is not a URL; use https://host/path")
	}
	if address.Scheme == "https" || address.Scheme == "http" && isLoopback(address.Hostname()) {
		return address, nil
	}
	return nil, fmt.Errorf("%s: plugins are downloaded over https only (http is allowed for loopback addresses); other sources are oci:// references, files, directories and names in plugins.registries", shown(address))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// shown returns an address without parts that may be secret.
func shown(address *url.URL) string {
	public := *address
	public.User, public.RawQuery, public.Fragment = nil, "", ""
	return public.String()
}

func fileName(address *url.URL) string {
	name := path.Base(path.Clean("/" + address.Path))
	if name == "/" || strings.HasPrefix(name, ".") {
		return "plugin"
	}
	return name
}

// companion returns the address of an accompanying file with this extension.
func companion(address *url.URL, extension string) *url.URL {
	other := *address
	other.Path, other.RawPath = address.Path+extension, ""
	return &other
}

// newClient returns a client that follows redirects, but never from https to http.
func newClient() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = responseTimeout
	transport.DisableCompression = true // stored files keep their length and bytes
	return &http.Client{Transport: transport, Timeout: downloadTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return checkFollowed(via[0].URL, req.URL)
	}}
}

// checkFollowed returns an error if plugins must not come from the address to, or if a remote address leads to this
// machine.
func checkFollowed(from, to *url.URL) error {
	if _, err := parseURL(to.String()); err != nil || from.Scheme == "https" && to.Scheme != "https" || !isLoopback(from.Hostname()) && isLoopback(to.Hostname()) {
		return fmt.Errorf("%s points to %s, which is not allowed as a source of plugins: it must use https and not be on this machine", shown(from), shown(to))
	}
	return nil
}

func get(ctx context.Context, client *http.Client, address *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the address is added below, without parts that may be secret
		}
		return nil, fmt.Errorf("%s cannot be fetched: %w; check the address and the network", shown(address), err)
	}
	return res, nil
}

// download gets a small file that may not exist, in which case it returns nil.
func download(ctx context.Context, client *http.Client, address *url.URL) ([]byte, error) {
	res, err := get(ctx, client, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusOK:
		return readSmall(res.Body, shown(address))
	case http.StatusNotFound, http.StatusForbidden, http.StatusGone: // object stores return 403 for missing objects
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxCompanion))
		return nil, nil
	}
	return nil, fmt.Errorf("%s returned %s; try again", shown(address), res.Status)
}
