package mcphttp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// paperLife is how long a provider's document is served without asking again.
const paperLife = time.Minute

// papers keeps the identity provider's RFC 8414 document.
type papers struct {
	access Access

	mu      sync.Mutex
	current json.RawMessage
	fetched time.Time
}

// metadata returns the document, asking the provider at most once a minute. While the provider is
// away the last document is served.
func (p *papers) metadata(ctx context.Context) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && time.Since(p.fetched) < paperLife {
		return p.current, nil
	}
	doc, err := p.access.Metadata(ctx)
	if err != nil && (p.current == nil || core.CodeOf(err) != core.CodeUnavailable) {
		p.current = nil
		return nil, err
	}
	if err == nil {
		p.current = doc
	}
	p.fetched = time.Now()
	return p.current, nil
}

// protectedResource is RFC 9728. The document at the path-suffixed place speaks of that path.
func (e *Endpoint) protectedResource(suffix string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if !e.admits(c) {
			return c.Status(fiber.StatusForbidden).SendString(foreign)
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
			Methods  []string `json:"bearer_methods_supported"`
		}{e.guard.Address(c.Context()) + suffix, servers, []string{"header"}})
	}
}

// authorizationServer is RFC 8414: the provider's document as the provider wrote it.
func (e *Endpoint) authorizationServer(c *fiber.Ctx) error {
	if !e.admits(c) {
		return c.Status(fiber.StatusForbidden).SendString(foreign)
	}
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	doc, err := e.papers.metadata(ctx)
	if err != nil {
		return e.denied(err).plain(c)
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return sendJSON(c, fiber.StatusOK, doc)
}
