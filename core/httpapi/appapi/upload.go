package appapi

import (
	"bytes"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// Upload is POST /v1/apps/upload: the body is an .mcpb file.
func (h *Handlers) Upload(c *fiber.Ctx, caller core.Caller) error {
	if err := caller.MayInstall(core.SourcePath); err != nil {
		return err
	}
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.InstallUpload(ctx, caller.Workspace.ID, uploadOf(c), source.Request{
		ServerName: c.Query("serverName"), AllowPrivate: caller.MayReachPrivate(),
	})
	if err != nil {
		return respond.WithCode(core.CodeInstallFailed, "the installation failed", err)
	}
	return c.JSON(app)
}

func uploadOf(c *fiber.Ctx) io.Reader { return bytes.NewReader(c.Context().PostBody()) }
