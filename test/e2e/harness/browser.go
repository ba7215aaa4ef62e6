package harness

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// FreePort returns a free port. Use it for a server whose address must be known before it starts, or must not change.
func FreePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(testenv.FreePort(t))
}

// Browser keeps cookies and follows redirects like a browser.
type Browser struct {
	client http.Client
	Stop   string // a prefix of URLs that the browser does not open; "" for none
	At     *url.URL
}

// NewBrowser returns a browser without cookies.
func NewBrowser(t *testing.T) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{client: http.Client{Jar: jar}}
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if b.At = r.URL; b.Stop != "" && strings.HasPrefix(r.URL.String(), b.Stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return b
}

// Visit opens an address and follows redirects. Afterwards, At is the address of the last request.
func (b *Browser) Visit(t *testing.T, address string) *http.Response {
	t.Helper()
	resp, _ := b.load(t, http.MethodGet, address, nil)
	return resp
}

// Read is like Visit but also returns the page.
func (b *Browser) Read(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	return b.load(t, http.MethodGet, address, nil)
}

// Submit submits a form to an address and follows redirects. It returns the last page.
func (b *Browser) Submit(t *testing.T, address string, fields url.Values) (*http.Response, string) {
	t.Helper()
	return b.load(t, http.MethodPost, address, fields)
}

func (b *Browser) load(t *testing.T, method, address string, fields url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	b.At = req.URL
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(page)
}

// SetCookie stores a cookie in the browser for an address.
func (b *Browser) SetCookie(t *testing.T, address, name, value string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// Cookie returns the value of a cookie that the browser would send to an address, or "".
func (b *Browser) Cookie(t *testing.T, name, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}
