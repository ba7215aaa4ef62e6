package mcphttp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// documentAge is how long a provider's document is served before it is fetched again.
const documentAge = time.Minute

// documents caches the identity provider's RFC 8414 document.
type documents struct {
	access Access

	mu      sync.Mutex
	current json.RawMessage
	fetched time.Time

	asking  sync.Mutex              // held while a request fetches the scopes that the provider offers
	offered atomic.Pointer[offered] // nil before the first fetch
}

// offered contains the scopes that an identity provider states it supports.
type offered struct {
	scopes []string // nil if it states none
	until  time.Time
}

// scopesTimeout is how long a 401 response may wait for the identity provider's document.
const scopesTimeout = 2 * time.Second

// scopes returns the wanted scopes that the identity provider offers. It returns all of them if the provider does not
// state what it offers, or if there are several providers (RFC 8414 section 2, scopes_supported). Many providers reject
// a client that registers with any other scope.
func (d *documents) scopes(ctx context.Context, wanted []string) []string {
	known := d.offered.Load()
	if len(wanted) > 0 && (known == nil || time.Now().After(known.until)) && d.asking.TryLock() {
		known = d.askScopes(ctx)
		d.offered.Store(known)
		d.asking.Unlock()
	}
	if known == nil || known.scopes == nil {
		return wanted
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(scope string) bool { return !slices.Contains(known.scopes, scope) })
}

func (d *documents) askScopes(ctx context.Context) *offered {
	ctx, cancel := context.WithTimeout(ctx, scopesTimeout)
	defer cancel()
	known := &offered{until: time.Now().Add(documentAge)}
	if about, err := d.access.Describe(ctx); err != nil || len(about.AuthorizationServers) > 1 {
		return known
	}
	var document struct {
		Scopes []string `json:"scopes_supported"`
	}
	if doc, err := d.metadata(ctx); err == nil && json.Unmarshal(doc, &document) == nil {
		known.scopes = document.Scopes
	}
	return known
}

// metadata returns the document. It requests it from the provider at most once a minute, and returns the last document
// if the provider is unreachable.
func (d *documents) metadata(ctx context.Context) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil && time.Since(d.fetched) < documentAge {
		return d.current, nil
	}
	doc, err := d.access.Metadata(ctx)
	if err != nil && (d.current == nil || core.CodeOf(err) != core.CodeUnavailable) {
		d.current = nil
		return nil, err
	}
	if err == nil {
		d.current = doc
	}
	d.fetched = time.Now()
	return d.current, nil
}

// protectedResourcePath is the path of the server's RFC 9728 document. The path of a resource is appended to it for
// that resource's document.
const protectedResourcePath = "/.well-known/oauth-protected-resource"

// protectedResource serves the RFC 9728 documents. The document at a path describes the resource at that path.
func (e *Endpoint) protectedResource(c *fiber.Ctx) error {
	if !e.admits(c) {
		return c.Status(fiber.StatusForbidden).SendString(foreign)
	}
	if _, valid := resourceOf(c); !valid {
		return (&fault{status: fiber.StatusNotFound, message: "not found"}).plain(c)
	}
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	servers := []string{}
	about, err := e.o.Access.Describe(ctx)
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		return e.denied(err).plain(c)
	}
	if err == nil && about.AuthorizationServers != nil {
		servers = about.AuthorizationServers
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return c.JSON(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{e.guard.Address(c.Context()) + strings.TrimPrefix(string(c.Context().Path()), protectedResourcePath), servers, e.documents.scopes(ctx, e.o.Scopes()), []string{"header"}})
}

// authorizationServer serves the provider's RFC 8414 document, unchanged.
func (e *Endpoint) authorizationServer(c *fiber.Ctx) error {
	if !e.admits(c) {
		return c.Status(fiber.StatusForbidden).SendString(foreign)
	}
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	doc, err := e.documents.metadata(ctx)
	if err != nil {
		return e.denied(err).plain(c)
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return sendJSON(c, fiber.StatusOK, doc)
}
