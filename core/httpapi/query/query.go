package query

import (
	"net/url"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Int reads a whole number from 1 to most; usual is its default.
func Int(c *fiber.Ctx, name string, usual, most int) (int, error) {
	n, err := strconv.Atoi(c.Query(name, strconv.Itoa(usual)))
	if err != nil || n < 1 || n > most {
		return 0, core.Errorf(core.CodeBadRequest, "%s must be a whole number from 1 to %d", name, most)
	}
	return n, nil
}

// Time parses an RFC 3339 time or a date; name is the parameter or field it is the value of.
func Time(name, text string) (at time.Time, day bool, err error) {
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at, true, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil || at.UTC().Year() > 9999 {
		return at, false, core.Errorf(core.CodeBadRequest, "%s must be a date such as 2026-11-20, or a time such as 2026-11-20T08:00:00Z", name)
	}
	return at.UTC(), false, nil
}

// PathText is a path parameter that may be percent-encoded, such as an email address.
func PathText(c *fiber.Ctx, name string) (string, error) {
	text, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return "", core.Errorf(core.CodeBadRequest, "the path is not well-formed")
	}
	return text, nil
}
