package httpio

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// QueryInt reads a whole number between 1 and max from the query; def is the default.
func QueryInt(c *fiber.Ctx, name string, def, max int) (int, error) {
	n, err := strconv.Atoi(c.Query(name, strconv.Itoa(def)))
	if err != nil || n < 1 || n > max {
		return 0, core.Errorf(core.CodeBadRequest, "%s must be a whole number from 1 to %d", name, max)
	}
	return n, nil
}

// QueryBool reads true or false from the query. The default is false.
func QueryBool(c *fiber.Ctx, name string) (bool, error) {
	value, err := strconv.ParseBool(c.Query(name, "false"))
	if err != nil {
		return false, core.Errorf(core.CodeBadRequest, "%s must be true or false", name)
	}
	return value, nil
}

// ParseTime parses an RFC 3339 time or a date. day reports whether it was a date. name is the parameter or field, for
// the error.
func ParseTime(name, text string) (at time.Time, day bool, err error) {
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at, true, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil || at.UTC().Year() > 9999 {
		return at, false, core.Errorf(core.CodeBadRequest, "%s must be a date such as 2026-11-20, or a time such as 2026-11-20T08:00:00Z", name)
	}
	return at.UTC(), false, nil
}

// DecodePath replaces a request's path with its decoded form before routing. This is the only place that decodes path
// parameters. A path that encodes a slash, a control character or invalid UTF-8 is refused. The path of a resource
// (/v1/apps/:name/resources/...) may be a URI, so its handler decodes it.
func DecodePath(c *fiber.Ctx) error {
	path, resource := c.Path(), ""
	if !strings.Contains(path, "%") {
		return c.Next()
	}
	if i := strings.Index(path, "/resources/"); i >= 0 && strings.HasPrefix(path, "/v1/apps/") {
		path, resource = path[:i], path[i:]
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		text, err := url.PathUnescape(segment)
		if err != nil || strings.Contains(text, "/") || core.CheckText("the path", text) != nil {
			return core.Errorf(core.CodeBadRequest, "the path is not well-formed: one of its parts has an invalid encoding, or encodes a slash or a control character")
		}
		segments[i] = text
	}
	c.Path(strings.Join(segments, "/") + resource)
	return c.Next()
}

// AuditTarget is the key of a local value: a string that replaces the path parameter as the target in a request's audit
// record.
type AuditTarget struct{}

// AuditError is the key of a local value: the error that a handler has shown to a person as a page.
type AuditError struct{}
