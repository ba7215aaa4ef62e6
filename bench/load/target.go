package load

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// revision is the protocol revision that the generator requests.
const revision = "2025-11-25"

// Target is a server and the tool call to make.
type Target struct {
	URL    string            // the endpoint, http or https
	Header map[string]string // sent with every request
	Tool   string            // the tool to call
	Text   string            // the value of its argument "text"
}

// Padded returns a copy of t whose Text is chosen so that the arguments have size bytes, or as few as possible
// if size is too small.
func (t Target) Padded(size int) Target {
	t.Text = strings.Repeat("x", max(1, size-len(`{"text":""}`)))
	return t
}

// address is a parsed Target: where to connect, and how each request starts.
type address struct {
	tls  bool
	host string // with the port
	name string // without the port
	head []byte // Host, and the headers that never change
	path string
}

func (t Target) parse() (address, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return address{}, fmt.Errorf("the URL %q is not http://host/path or https://host/path", t.URL)
	}
	a := address{tls: u.Scheme == "https", host: u.Host, name: u.Hostname(), path: u.RequestURI()}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[a.tls])
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Host: %s\r\nUser-Agent: ropewalk-bench\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n", u.Host)
	names := make([]string, 0, len(t.Header))
	for name := range t.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.ContainsAny(name+t.Header[name], "\r\n") {
			return address{}, fmt.Errorf("the header %q contains a line break", name)
		}
		fmt.Fprintf(&b, "%s: %s\r\n", name, t.Header[name])
	}
	a.head = b.Bytes()
	return a, nil
}

func (a address) dial() (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if a.tls {
		secure := &tls.Dialer{NetDialer: d, Config: &tls.Config{ServerName: a.name, MinVersion: tls.VersionTLS12}}
		return secure.Dial("tcp", a.host)
	}
	return d.Dial("tcp", a.host)
}

// callParams returns the params of tools/call as JSON.
func (t Target) callParams() []byte {
	name, _ := json.Marshal(t.Tool) // a string can always be marshaled
	text, _ := json.Marshal(t.Text)
	return fmt.Appendf(nil, `{"name":%s,"arguments":{"text":%s}}`, name, text)
}
