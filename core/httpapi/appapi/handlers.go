package appapi

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Apps manages the installed apps.
type Apps interface {
	List(workspace string) []core.App
	Install(ctx context.Context, workspace string, r source.Request) (core.App, error)
	Uninstall(ctx context.Context, workspace, name string) (dataPath string, err error)
	Restore(ctx context.Context, workspace, name string) (core.App, error)
	Start(ctx context.Context, workspace, name string) (core.App, error)
	Stop(ctx context.Context, workspace, name string) (core.App, error)
	Details(workspace, name string) (apps.Details, error)
	Configure(ctx context.Context, workspace, name string, s apps.Settings) (core.App, error)
	Restart(ctx context.Context, workspace, name string) (core.App, error)
	Update(ctx context.Context, workspace, name string, r source.UpdateRequest) (core.App, error)
	Logs(ctx context.Context, workspace, name string, tail int, follow bool) (lines []apps.LogLine, more <-chan apps.LogLine, err error)
	InstallUpload(ctx context.Context, workspace string, body io.Reader, r source.Request) (core.App, error)
	Import(ctx context.Context, workspace string, r source.ImportRequest) (source.ImportResult, error)
	Permissions(c core.Caller, name string) (apps.Permissions, error)
	ChangePermissions(ctx context.Context, c core.Caller, name string, change core.PermissionChange) (apps.Permissions, error)
	TracePermissions(ctx context.Context, c core.Caller, name string, d time.Duration) (apps.Permissions, error)
	MissingPermissions(c core.Caller, name string) *core.AppPermissions
	Hints(c core.Caller, name string) []string
}

// Tools gives access to the tools of each workspace.
type Tools interface {
	List(c core.Caller) []tools.Listed
	Call(ctx context.Context, c core.Caller, call tools.Call) (result json.RawMessage, failed bool, err error)
	Called(call tools.Call) (tool string)
	ReadView(ctx context.Context, c core.Caller, app, uri string) (apps.Resource, error)
	ShowsTool(c core.Caller, server string, names ...string) bool
	ShowsEvent(c core.Caller, data json.RawMessage) bool
}

// Models reports which tools were refused by models.
type Models interface {
	RefusedTools(ctx context.Context, c core.Caller, server string) ([]core.RefusedTool, error)
}

// Handlers holds the route handlers and their dependencies.
type Handlers struct {
	Apps      Apps
	Tools     Tools
	Models    Models
	Pins      Pins
	Approvals Approvals
	Streams   *stream.Streams
	Limits    *limits.Limits
	Guard     *webguard.Policy
	Authn     *authn.Authenticator
	Log       hclog.Logger
	Quiet     time.Duration // between a stream's keep-alive comments
}
