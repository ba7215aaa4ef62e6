package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"mime"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// dist contains each file twice, compressed with brotli (.br) and with gzip (.gz). Files that are already
// compressed, such as fonts, are stored unchanged.
//
//go:embed dist
var dist embed.FS

// files serves the embedded files by path.
type files struct{ fs fs.FS }

func embedded() files {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // dist is a constant
	}
	return files{sub}
}

// page serves the console's only HTML page. The browser revalidates it each time, so that a new version of the
// server also means a new version of the console.
func (c *Console) page(ctx *fiber.Ctx) error {
	ctx.Set(fiber.HeaderContentSecurityPolicy, c.policy)
	ctx.Set(fiber.HeaderXFrameOptions, "DENY")
	ctx.Set("Cross-Origin-Opener-Policy", "same-origin")
	ctx.Set(fiber.HeaderCacheControl, "no-cache")
	return c.files.send(ctx, "index.html")
}

func (c *Console) icon(ctx *fiber.Ctx) error {
	ctx.Set(fiber.HeaderCacheControl, "max-age=86400")
	return c.files.send(ctx, "favicon.svg")
}

// asset serves a file that never changes, because its name contains a hash of its content.
func (c *Console) asset(ctx *fiber.Ctx) error {
	ctx.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	return c.files.send(ctx, path.Join("assets", ctx.Params("*")))
}

// send responds with a file in the best encoding that the client accepts.
func (f files) send(ctx *fiber.Ctx, name string) error {
	ctx.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	body, encoding, err := f.read(name, &ctx.Request().Header)
	if err != nil {
		ctx.Response().Header.Del(fiber.HeaderCacheControl)
		return core.Errorf(core.CodeNotFound, "not found")
	}
	if encoding != "" {
		ctx.Set(fiber.HeaderContentEncoding, encoding)
	}
	ctx.Set(fiber.HeaderContentType, contentType(name))
	return ctx.Send(body)
}

func (f files) read(name string, h *fasthttp.RequestHeader) (body []byte, encoding string, err error) {
	if !fs.ValidPath(name) {
		return nil, "", fs.ErrNotExist
	}
	if h.HasAcceptEncoding("br") {
		if body, err = fs.ReadFile(f.fs, name+".br"); err == nil {
			return body, "br", nil
		}
	}
	if body, err = fs.ReadFile(f.fs, name); err == nil {
		return body, "", nil
	}
	if body, err = fs.ReadFile(f.fs, name+".gz"); err != nil || h.HasAcceptEncoding("gzip") {
		return body, "gzip", err
	}
	body, err = unzip(body)
	return body, "", err
}

func unzip(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// contentType returns the media type for a file name extension. For the types of the console's own files it does not
// rely on the machine's MIME tables.
func contentType(name string) string {
	switch path.Ext(strings.TrimSuffix(name, ".map")) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return fiber.MIMETextHTMLCharsetUTF8
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return fiber.MIMEOctetStream
}
