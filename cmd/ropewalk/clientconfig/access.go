package clientconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// probeTimeout is how long the server may take to report what its MCP endpoint accepts.
const probeTimeout = 5 * time.Second

// access is how a server's MCP endpoint treats the key that commands send.
type access struct {
	refused bool // the endpoint does not accept the key, or requests without one
	login   bool // clients can log in with OAuth
}

// probe asks the server what its MCP endpoint accepts. It returns the zero value if the server cannot be reached:
// configuring a client does not require a running server.
func probe(ctx context.Context, client *apiclient.Client, path string) access {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// The endpoint authenticates before it rejects the method, so the request has no effect.
	err := client.Send(ctx, http.MethodHead, path, "", nil, nil)
	refusal, ok := errors.AsType[*apiclient.Error](err)
	if !ok || refusal.Status != http.StatusUnauthorized {
		return access{}
	}
	var document struct {
		Servers []json.RawMessage `json:"authorization_servers"`
	}
	err = client.Get(ctx, "/.well-known/oauth-protected-resource", nil, &document)
	return access{refused: true, login: err != nil || len(document.Servers) > 0}
}

// advice returns what must be done before a client can connect, or "".
func (t client) advice(a access, c *apiclient.Client) string {
	if !a.refused || a.login {
		return ""
	}
	why := "The server has no identity provider, and /mcp accepts only API keys."
	if c.KeyFrom != "" {
		why = fmt.Sprintf("/mcp does not accept the key of %s: the server has no identity provider, and SERVICE_API_KEY is for /v1 only.", c.KeyFrom)
	}
	if t.keyAdvice == "" {
		return why + fmt.Sprintf(" %s logs in only with OAuth: configure an identity provider (auth, docs/identity.md).", t.title)
	}
	return strings.Join([]string{
		why,
		"Create an API key: `ropewalk key create NAME`, on the server's machine, or elsewhere after `ropewalk login`.",
		t.keyAdvice,
	}, "\n")
}
