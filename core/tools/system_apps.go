package tools

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
)

// Manager is the part of apps.Manager that the server's own tools need.
type Manager interface {
	List(workspace string) []core.App
	Install(ctx context.Context, workspace string, r source.Request) (core.App, error)
	Uninstall(ctx context.Context, workspace, name string) (dataPath string, err error)
	Start(ctx context.Context, workspace, name string) (core.App, error)
	Stop(ctx context.Context, workspace, name string) (core.App, error)
}

// ListApps returns system__list_apps.
func ListApps(m Manager) System {
	return System{
		Name: "list_apps", Title: "List apps", ReadOnly: true,
		Description: "Lists the apps installed in this workspace with their status and number of tools.",
		Schema:      json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		Run: func(_ context.Context, c core.Caller, _ json.RawMessage) (any, error) {
			return map[string]any{"apps": c.AppsFor(m.List(c.Workspace.ID))}, nil
		},
	}
}

// ManageApps returns system__manage_apps, which requires the bundleManagement flag.
func ManageApps(m Manager) System {
	return System{
		Name: "manage_apps", Title: "Manage apps", Requirement: core.Requirement{Flags: []string{config.FlagBundleManagement}},
		Description: "Installs, uninstalls, starts or stops an app of this workspace. To install, give exactly one of " +
			"bundle (a name in a registry), path (a bundle directory or .mcpb file on the server) and url (a remote MCP server); " +
			"for the other actions give the app's short name.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["install", "uninstall", "start", "stop"]},
    "name": {"type": "string", "description": "short name of an installed app: uninstall, start, stop"},
    "bundle": {"type": "string", "description": "install: bundle name in a registry, such as @scope/bundle"},
    "path": {"type": "string", "description": "install: bundle directory or .mcpb file on the server"},
    "url": {"type": "string", "description": "install: URL of a remote MCP server"},
    "serverName": {"type": "string", "description": "install with url: the app's short name"},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "install: environment and user configuration"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Permit: func(c core.Caller, arguments json.RawMessage) error {
			var in manageApps
			if err := Arguments(arguments, &in); err != nil {
				return err
			}
			return in.check(c)
		},
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			var in manageApps
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			return in.run(ctx, m, c)
		},
	}
}

type manageApps struct {
	Action     string                 `json:"action"`
	Name       string                 `json:"name"`
	Bundle     string                 `json:"bundle"`
	Path       string                 `json:"path"`
	URL        string                 `json:"url"`
	ServerName string                 `json:"serverName"`
	Env        map[string]core.Secret `json:"env"`
}

// check returns an error if c may not perform the action.
func (in manageApps) check(c core.Caller) error {
	if in.Action != "install" {
		return c.MayManageApps()
	}
	r := in.request(c)
	if kind, err := r.Kind(); err == nil { // run reports an invalid request
		return c.MayInstall(kind)
	}
	return nil
}

func (in manageApps) request(c core.Caller) source.Request {
	return source.Request{
		Name: in.Bundle, Path: in.Path, URL: in.URL, ServerName: in.ServerName, Env: in.Env,
		AllowPrivate: c.MayReachPrivate(), Restricted: !c.MayInstallUnconfined(), Caller: c,
	}
}

func (in manageApps) run(ctx context.Context, m Manager, c core.Caller) (any, error) {
	if in.Action == "install" {
		r := in.request(c)
		if _, err := r.Kind(); err != nil {
			return nil, err
		}
		return m.Install(ctx, c.Workspace.ID, r)
	}
	if in.Name == "" {
		return nil, core.Errorf(core.CodeBadRequest, "name is missing; set it to the short name of the app to %s", in.Action)
	}
	switch in.Action {
	case "uninstall":
		path, err := m.Uninstall(ctx, c.Workspace.ID, in.Name)
		if err != nil {
			return nil, err
		}
		return map[string]any{"name": in.Name, "uninstalled": true, "dataPreserved": true, "dataPath": path}, nil
	case "start":
		return appStatus(m.Start(ctx, c.Workspace.ID, in.Name))
	case "stop":
		return appStatus(m.Stop(ctx, c.Workspace.ID, in.Name))
	}
	return nil, core.Errorf(core.CodeBadRequest, "action is %q; it must be install, uninstall, start or stop", in.Action)
}

func appStatus(app core.App, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": app.Name, "status": app.Status}, nil
}
