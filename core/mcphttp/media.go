package mcphttp

import (
	"bytes"
	"mime"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// checkMedia holds a POST to the media types of Streamable HTTP.
func checkMedia(c *fiber.Ctx) *fault {
	if !isJSON(c.Request().Header.ContentType()) {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Type must be application/json"}
	}
	if encoding := c.Request().Header.Peek(fiber.HeaderContentEncoding); len(encoding) > 0 && !strings.EqualFold(string(encoding), "identity") {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Encoding is not supported here"}
	}
	if string(c.Request().Header.Peek(fiber.HeaderAccept)) != usualAccept && (!accepts(c, "application/json") || !accepts(c, "text/event-stream")) {
		return &fault{status: fiber.StatusNotAcceptable, code: codeServer, message: "Accept must allow both application/json and text/event-stream"}
	}
	return nil
}

// usualAccept is what nearly every client sends.
const usualAccept = "application/json, text/event-stream"

// isJSON reports whether a Content-Type is application/json. Nearly always it is just that.
func isJSON(value []byte) bool {
	if string(value) == fiber.MIMEApplicationJSON {
		return true
	}
	media, _, err := mime.ParseMediaType(string(value))
	return err == nil && media == fiber.MIMEApplicationJSON
}

// accepts reports whether Accept allows a media type, by name or by range.
func accepts(c *fiber.Ctx, media string) bool {
	family := media[:strings.IndexByte(media, '/')+1]
	for _, value := range c.Request().Header.PeekAll(fiber.HeaderAccept) {
		for item := range bytes.SplitSeq(value, []byte{','}) {
			item, _, _ = bytes.Cut(item, []byte{';'})
			item = bytes.TrimSpace(item)
			named, ranged := bytes.CutSuffix(item, []byte{'*'})
			switch {
			case bytes.EqualFold(item, []byte(media)), ranged && bytes.EqualFold(named, []byte(family)), string(item) == "*/*":
				return true
			}
		}
	}
	return false
}
