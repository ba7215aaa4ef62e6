package mcphttp

import (
	"fmt"
	"net"
	"strings"
)

// dial opens a bare connection to the rig.
func (r *rig) dial() net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.Fatal(err)
	}
	return conn
}

// raw writes a request out.
func (r *rig) raw(method string, w who, body string, extra ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Workspace-Id: %s\r\nAccept: application/json, text/event-stream\r\n", method, r.addr, w.token, w.workspace)
	if w.session != "" {
		fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\n", w.session)
	}
	for _, e := range extra {
		b.WriteString(e + "\r\n")
	}
	if method == "POST" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}
