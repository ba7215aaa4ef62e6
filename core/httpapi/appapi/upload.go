package appapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/stream"
)

// Limits of the upload route, whose body is streamed.
const (
	MaxUpload = 64 << 20 // bytes in the body
)

const maxUploadSettings = 1 << 20 // bytes in the part "settings"

// uploadSettings is the part "settings" of an upload.
type uploadSettings struct {
	ServerName  string                 `json:"serverName"`
	Env         map[string]core.Secret `json:"env"`
	Permissions *core.PermissionChange `json:"permissions"`
	Replace     bool                   `json:"replace"` // see source.Request
}

// Upload handles POST /v1/apps/upload: the body is an .mcpb file, or a form with the part "settings" (JSON) followed by
// the part "file". The file goes straight from the connection to disk and is never held in memory as a whole.
func (h *Handlers) Upload(c *fiber.Ctx, caller core.Caller) (any, error) {
	ctx, cancel := context.WithCancel(c.UserContext())
	defer cancel()
	// A disconnect can be detected only after the body has been read.
	var peer *stream.Peer
	received := &receivedBody{from: requestBody(c), left: MaxUpload, atEnd: func() { peer = stream.WatchPeer(c.Context().Conn(), cancel) }}
	defer func() {
		if peer != nil {
			peer.Stop()
		}
	}()
	settings, file, err := uploadParts(c, received)
	if err != nil {
		return nil, err
	}
	app, err := h.Apps.InstallUpload(ctx, caller.Workspace.ID, file, source.Request{
		ServerName: settings.ServerName, Env: settings.Env, AllowPrivate: caller.MayReachPrivate(), Restricted: !caller.MayInstallUnconfined(),
		Caller: caller, Permissions: settings.Permissions, Hints: true, Replace: settings.Replace,
	})
	return h.forCaller(caller, app), httpio.WithCode(core.CodeInstallFailed, "the installation failed", err)
}

// requestBody returns the body of a request as it arrives.
func requestBody(c *fiber.Ctx) io.Reader {
	if stream := c.Context().RequestBodyStream(); stream != nil {
		return stream
	}
	return eofReader{}
}

type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }

// uploadParts returns the settings of an upload and the reader of its file.
func uploadParts(c *fiber.Ctx, received io.Reader) (uploadSettings, io.Reader, error) {
	replace, err := httpio.QueryBool(c, "replace")
	if err != nil {
		return uploadSettings{}, nil, err
	}
	settings := uploadSettings{ServerName: c.Query("serverName"), Replace: replace}
	media, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType, fiber.MIMEOctetStream))
	switch {
	case err == nil && (media == fiber.MIMEOctetStream || media == "application/zip"):
		return settings, received, nil
	case err != nil || media != fiber.MIMEMultipartForm:
		return settings, nil, core.Errorf(core.CodeUnsupportedMedia, "the Content-Type must be application/octet-stream, application/zip or multipart/form-data")
	}
	form := multipart.NewReader(received, params["boundary"])
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return settings, nil, core.Errorf(core.CodeBadRequest, "the form has no part \"file\"; send the .mcpb file in it")
		case err != nil:
			return settings, nil, formError(err)
		}
		switch part.FormName() {
		case "settings":
			if settings, err = readSettings(part, settings); err != nil {
				return settings, nil, err
			}
		case "file":
			return settings, fileReader{part, form}, nil
		} // other parts are ignored, like unknown members of a JSON body
	}
}

func readSettings(part io.Reader, settings uploadSettings) (uploadSettings, error) {
	text, err := io.ReadAll(io.LimitReader(part, maxUploadSettings+1))
	if err != nil {
		return settings, formError(err)
	}
	if len(text) > maxUploadSettings {
		return settings, core.Errorf(core.CodePayloadTooLarge, "the part \"settings\" is too large: the limit is %d bytes", maxUploadSettings)
	}
	read, err := httpio.Decode[uploadSettings](text)
	if err != nil {
		return settings, err
	}
	if read.ServerName == "" {
		read.ServerName = settings.ServerName
	}
	return read, nil
}

// fileReader reads the part "file". It refuses settings that come after it, because they would be ignored.
type fileReader struct {
	part io.Reader
	form *multipart.Reader
}

func (f fileReader) Read(p []byte) (int, error) {
	n, err := f.part.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	for {
		part, err := f.form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return n, io.EOF
		case err != nil:
			return n, formError(err)
		case part.FormName() == "settings" || part.FormName() == "file":
			return n, core.Errorf(core.CodeBadRequest, "the part \"file\" must be the last part of the form; send \"settings\" before it")
		}
	}
}

func formError(err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	return core.Errorf(core.CodeBadRequest, "the form cannot be read: %v", err)
}

// receivedBody reads a body of limited size and calls atEnd once it has ended.
type receivedBody struct {
	from  io.Reader
	left  int
	atEnd func()
}

func (b *receivedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, core.Errorf(core.CodePayloadTooLarge, "the body is too large: the limit is %d bytes", MaxUpload)
	}
	if errors.Is(err, io.EOF) && b.atEnd != nil {
		b.atEnd()
		b.atEnd = nil
	}
	return n, err
}
