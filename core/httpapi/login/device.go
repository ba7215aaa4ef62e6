package login

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
)

// pollEvery is the interval at which a device checks whether it has been logged in.
const pollEvery = 2 * time.Second

// DeviceRequest is the request body of Device.
type DeviceRequest struct {
	Name        string `json:"name"`        // the computer's own name
	RedirectURI string `json:"redirectUri"` // where the command line waits for the browser; "" if it polls
}

type deviceAnswer struct {
	Token     string    `json:"token"` // valid as the session cookie once a person has agreed
	Code      string    `json:"code"`
	URL       string    `json:"url"`      // the page on which a person enters the code
	LoginURL  string    `json:"loginUrl"` // the same page, with the code filled in
	ExpiresAt time.Time `json:"expiresAt"`
	Interval  int       `json:"intervalSeconds"`
}

// origin returns the address at which the browser reaches the server.
func (h *Handlers) origin(c *fiber.Ctx) string {
	return h.Guard.Scheme(c.Context()) + "://" + string(c.Context().Host())
}

// Device handles POST /v1/auth/device. A command line calls it to start a login (RFC 8628 section 3.1).
func (h *Handlers) Device(c *fiber.Ctx, _ core.Caller, r DeviceRequest) (any, error) {
	client := h.Guard.ClientAddress(c.Context())
	if err := h.Access.AllowBrowserLogin(client); err != nil {
		return nil, err
	}
	d, err := h.Access.AskForLogin(c.UserContext(), access.Device{Name: r.Name, Address: client, Redirect: r.RedirectURI})
	if err != nil {
		return nil, err
	}
	base := cmp.Or(strings.TrimSuffix(h.Guard.BaseURL, "/"), h.origin(c))
	c.Set(fiber.HeaderCacheControl, "no-store")
	return deviceAnswer{
		Token: d.Token, Code: d.Code, URL: base + "/v1/auth/device", LoginURL: base + "/v1/auth/authorize?" + url.Values{"device": {d.Code}}.Encode(),
		ExpiresAt: d.Expires, Interval: int(pollEvery / time.Second),
	}, nil
}

// DevicePage handles GET /v1/auth/device, the page on which a person enters the code that a command line shows.
func (h *Handlers) DevicePage(c *fiber.Ctx, _ core.Caller) (any, error) {
	return nil, page{Title: "Log in on the command line", Text: []string{"Enter the code that `ropewalk login` shows."}, Ask: true}.send(c, fiber.StatusOK)
}

// askConsent sends the page on which a person allows a command line to act as them. Consent is necessary because
// someone else may have started the login and sent the person to this page.
func askConsent(c *fiber.Ctx, done access.Finished) error {
	d, who := done.Device, cmp.Or(done.User.Email, done.User.DisplayName, done.User.ID)
	p := page{Title: "Log in " + d.Name + "?", Consent: done.Consent, Code: d.Code, Text: []string{
		"The command line on " + d.Name + " (" + d.Address + ") wants to act as " + who + ".",
		"Allow this only if you ran `ropewalk login` there and it shows this code:",
	}}
	if d.Redirect != "" {
		to, err := url.Parse(d.Redirect)
		if err != nil {
			return err
		}
		p.form = to.Scheme + "://" + to.Host
	}
	return p.send(c, fiber.StatusOK)
}

// AnswerDevice handles POST /v1/auth/device/answer, the form on the consent page.
func (h *Handlers) AnswerDevice(c *fiber.Ctx, _ core.Caller) (any, error) {
	allow := c.FormValue("answer") == "allow"
	done, continueAt, err := h.Access.AnswerDevice(c.UserContext(), c.FormValue("consent"), allow)
	failed := err
	if err == nil && !allow {
		failed = core.Errorf(core.CodeForbidden, "the person refused the command-line login")
	}
	noteAttempt(c, Attempt{User: done.User, Provider: done.Provider, Err: failed})
	title, text := "Logged in", "You can close this page and go back to the command line."
	switch {
	case core.CodeOf(err) == core.CodeUnauthenticated:
		return nil, page{Title: "Not logged in", Text: []string{"This login has already been allowed or refused, or has expired. Run `ropewalk login` again."}}.send(c, fiber.StatusNotFound)
	case err != nil:
		return nil, err
	case continueAt != "":
		return nil, c.Redirect(continueAt, fiber.StatusSeeOther)
	case !allow:
		title, text = "Refused", "The command line was not logged in. You can close this page."
	}
	return nil, page{Title: title, Text: []string{text}}.send(c, fiber.StatusOK)
}
