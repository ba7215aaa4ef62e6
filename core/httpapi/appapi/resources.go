package appapi

import (
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// primary is the path that stands for the app's primary view.
const primary = "primary"

// ReadResource handles GET /v1/apps/:name/resources/:path. The path is `primary`, a ui:// URI (raw or percent-encoded),
// or a view's bare path, which stands for ui://<app>/<path>. If that view does not exist, the bare path is tried under
// the name in the primary view's URI, because not every bundle uses its server name in its URIs.
func (h *Handlers) ReadResource(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	uri, err := resourceURI(name, c.Params("*"))
	if err != nil {
		return nil, err
	}
	resource, err := h.Tools.ReadView(c.UserContext(), caller, name, uri)
	if path, bare := strings.CutPrefix(uri, "ui://"+name+"/"); bare && core.CodeOf(err) == core.CodeResourceNotFound {
		if alias := h.underPrimary(caller.Workspace.ID, name, path); alias != "" && alias != uri {
			resource, err = h.Tools.ReadView(c.UserContext(), caller, name, alias)
		}
	}
	if err != nil {
		return nil, err
	}
	accept := &c.Context().Request.Header
	media, _, _ := strings.Cut(viewType(resource.MIME), ";")
	asIs, asJSON := webguard.Weight(accept, media), webguard.Weight(accept, fiber.MIMEApplicationJSON)
	if asIs <= 0 && asJSON <= 0 {
		return nil, core.Errorf(core.CodeNotAcceptable, "the view can be sent as %s or application/json, but the Accept header allows neither", media)
	}
	if asJSON > asIs {
		return viewResource{URI: resource.URI, MIMEType: resource.MIME, Text: string(resource.Body), Meta: resource.Meta}, nil
	}
	c.Set(fiber.HeaderContentSecurityPolicy, h.viewPolicy())
	c.Set(fiber.HeaderContentType, viewType(resource.MIME))
	return nil, c.Send(resource.Body)
}

// viewResource is a view for a client that shows it in its own sandbox. Its _meta specifies what the sandbox must
// allow.
type viewResource struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType,omitempty"`
	Text     string          `json:"text"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// underPrimary returns the URI of a path under the name that an app's primary view uses for the app, or "" if there
// is no such view.
func (h *Handlers) underPrimary(workspace, name, path string) string {
	for _, app := range h.Apps.List(workspace) {
		if app.Name != name || app.UI == nil {
			continue
		}
		rest, isView := strings.CutPrefix(app.UI.PrimaryView.ResourceURI, "ui://"+name+"/")
		if own, _, _ := strings.Cut(rest, "/"); isView && own != "" {
			return "ui://" + own + "/" + path
		}
	}
	return ""
}

// resourceURI returns the URI of one of an app's ui:// resources. Other resources of the app, such as
// files, are not served to browsers.
func resourceURI(app, raw string) (string, error) {
	path, err := url.PathUnescape(raw)
	if err != nil {
		return "", core.Errorf(core.CodeResourceNotFound, "there is no such resource; its path is not well-formed")
	}
	if path == primary {
		return primary, nil
	}
	bare, isURI := strings.CutPrefix(path, "ui://")
	if !isURI && strings.Contains(path, "://") {
		return "", core.Errorf(core.CodeResourceNotFound, "only ui:// resources are served here")
	}
	if escapes(bare) {
		return "", core.Errorf(core.CodeResourceNotFound, "there is no such resource; its path contains a control character, a backslash, or an empty, . or .. segment")
	}
	if isURI {
		return path, nil
	}
	return "ui://" + app + "/" + path, nil
}

// escapes reports whether path could leave its directory, however often the app decodes it.
func escapes(path string) bool {
	for {
		parts := strings.Split(path, "/")
		if slices.Contains(parts, "..") || slices.Contains(parts, ".") || slices.Contains(parts, "") ||
			strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
			return true
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded // always shorter than before, so the loop ends
	}
}

// viewPolicy returns the Content-Security-Policy of a view, which is a third party's page on this server's origin. The
// sandbox gives it an opaque origin without cookies or storage, and it may not connect to anything. Inline scripts and
// styles run, because MCP Apps views need them.
func (h *Handlers) viewPolicy() string {
	frames := "'self'"
	if h.Guard.Dev {
		frames += " http://localhost:* http://127.0.0.1:*"
	}
	for _, origin := range h.Guard.Origins {
		frames += " " + origin
	}
	return "sandbox allow-scripts allow-forms allow-popups; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
		"img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors " + frames
}

// viewType returns text/html for every HTML profile and for resources without a type. Other resources of a view, such
// as images, keep their own type unless they are scripts.
func viewType(declared string) string {
	media, _, err := mime.ParseMediaType(declared)
	if err != nil || media == fiber.MIMETextHTML {
		return fiber.MIMETextHTMLCharsetUTF8
	}
	return webguard.ServedType(media)
}
