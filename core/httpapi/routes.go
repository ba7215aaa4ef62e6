package httpapi

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// route is one row of the route table: a request and everything that it requires. Rules that depend on the objects in a
// request, such as the owner of a conversation or the source of an app, are applied where those objects are read.
type route struct {
	method   string
	path     string
	audience authn.Audience
	requires core.Requirement
	action   action
}

// action is what a route does, and the body that it accepts.
type action struct {
	body     string // the body, as described in docs/api.md; "" for none
	limit    int    // bytes of the body; 0 for Options.MaxAPIBody
	streamed bool   // whether do reads the body from the connection
	large    bool   // whether the response may be large, so that each user gets only a few at a time
	do       func(*fiber.Ctx, core.Caller) (any, error)
}

// upTo sets the maximum size of the body in bytes.
func (a action) upTo(limit int) action {
	a.limit = limit
	return a
}

// large marks the response as possibly large.
func large(a action) action {
	a.large = true
	return a
}

// plain returns an action without a body. The result of do is sent as JSON; nil means that do has already responded.
func plain(do func(*fiber.Ctx, core.Caller) (any, error)) action { return action{do: do} }

// body returns an action with a JSON body.
func body[T any](do func(*fiber.Ctx, core.Caller, T) (any, error)) action {
	return action{body: "JSON", do: func(c *fiber.Ctx, caller core.Caller) (any, error) {
		sent, err := httpio.ReadBody[T](c.Context())
		if err != nil {
			return nil, err
		}
		return do(c, caller, sent)
	}}
}

// optionalBody is like body, but the body may be missing.
func optionalBody[T any](do func(*fiber.Ctx, core.Caller, T) (any, error)) action {
	with := body(do)
	return action{body: "JSON, or none", do: func(c *fiber.Ctx, caller core.Caller) (any, error) {
		if len(c.Context().PostBody()) > 0 {
			return with.do(c, caller)
		}
		var none T
		return do(c, caller, none)
	}}
}

func (s *Server) handler(r route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		caller, err := s.authn.Admit(c, r.audience)
		if err != nil {
			return err
		}
		if err := r.requires.Check(caller, s.options.Features.Enabled, "this"); err != nil {
			return err
		}
		if r.action.large {
			done, err := s.beginLarge(c.UserContext(), caller.User.ID)
			if err != nil {
				return err
			}
			defer done()
		}
		answer, err := r.action.do(c, caller)
		if err != nil || answer == nil {
			return err
		}
		if c.Method() == fiber.MethodGet && webguard.Refuses(&c.Context().Request.Header, fiber.MIMEApplicationJSON) {
			return core.Errorf(core.CodeNotAcceptable, "the response is application/json, which the Accept header refuses")
		}
		return c.JSON(answer)
	}
}

func (s *Server) routes() []route {
	return slices.Concat(s.sessionRoutes(), s.appRoutes(), s.accountRoutes(), s.chatRoutes(), s.peopleRoutes(), s.serverRoutes())
}

// anybody returns the requirement of routes that are open to everyone in their audience.
func anybody() core.Requirement { return core.Requirement{} }

// sessionRoutes returns the routes for logins, and those that a client calls first.
func (s *Server) sessionRoutes() []route {
	const get, post, patch = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch
	return []route{
		{post, "/v1/auth/login", authn.Anyone, anybody(), body(s.login.Login)},
		{post, "/v1/auth/logout", authn.Identity, anybody(), plain(s.login.Logout)},
		{get, "/v1/auth/session", authn.Identity, anybody(), plain(s.login.Session)},
		{get, "/v1/auth/authorize", authn.Anyone, anybody(), plain(s.login.Authorize)},
		{get, "/v1/auth/callback", authn.Anyone, anybody(), plain(s.login.Callback)},
		{post, "/v1/auth/device", authn.Anyone, anybody(), body(s.login.Device)},
		{get, "/v1/auth/device", authn.Anyone, anybody(), plain(s.login.DevicePage)},
		{post, "/v1/auth/device/answer", authn.Anyone, anybody(), action{body: "a form", do: s.login.AnswerDevice}},
		{post, "/v1/auth/backchannel-logout", authn.Anyone, anybody(), action{body: "a form", do: s.login.BackchannelLogout}},

		{get, "/v1/events", authn.Viewer, anybody(), plain(s.streamEvents)},

		{get, "/v1/workspace", authn.Member, anybody(), plain(s.getWorkspace)},
		{patch, "/v1/workspace", authn.Member, core.Requirement{Role: core.WorkspaceAdmin}, body(s.updateWorkspace)},
		{get, "/v1/bootstrap", authn.Member, anybody(), plain(s.getWorkspace)},
	}
}

// appRoutes returns the routes for apps and their tools.
func (s *Server) appRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	manage := core.Requirement{Role: core.WorkspaceAdmin}
	upload := action{body: "a bundle", limit: appapi.MaxUpload, streamed: true, do: s.app.Upload}
	return []route{
		{get, "/v1/apps", authn.Member, anybody(), plain(s.app.List)},
		{post, "/v1/apps/install", authn.Member, manage, body(s.app.Install)},
		{post, "/v1/apps/upload", authn.Member, core.Requirement{Role: core.BothAdmins}, upload},
		{post, "/v1/apps/import", authn.Member, manage, body(s.app.Import)},
		{get, "/v1/apps/:name", authn.Member, anybody(), large(plain(s.app.Get))},
		{patch, "/v1/apps/:name", authn.Member, manage, body(s.app.Configure)},
		{post, "/v1/apps/:name/restart", authn.Member, manage, plain(s.app.Restart)},
		{post, "/v1/apps/:name/update", authn.Member, manage, optionalBody(s.app.Update)},
		{get, "/v1/apps/:name/permissions", authn.Member, manage, plain(s.app.Permissions)},
		{patch, "/v1/apps/:name/permissions", authn.Member, manage, body(s.app.ChangePermissions)},
		{post, "/v1/apps/:name/permissions/trace", authn.Member, manage, body(s.app.TracePermissions)},
		{get, "/v1/apps/:name/logs", authn.Member, manage, large(plain(s.app.Logs))},
		{del, "/v1/apps/:name", authn.Member, manage, plain(s.app.Uninstall)},
		{post, "/v1/apps/:name/restore", authn.Member, manage, plain(s.app.Restore)},
		{post, "/v1/apps/:name/start", authn.Member, manage, plain(s.app.Start)},
		{post, "/v1/apps/:name/stop", authn.Member, manage, plain(s.app.Stop)},
		{get, "/v1/apps/:name/resources/*", authn.Viewer, anybody(), plain(s.app.ReadResource)},

		{get, "/v1/tools", authn.Member, anybody(), large(plain(s.app.ListTools))},
		{post, "/v1/tools/call", authn.Member, anybody(), body(s.app.CallTool)},

		{get, "/v1/pins", authn.Member, anybody(), plain(s.app.ListPins)},
		{post, "/v1/pins/:id", authn.Member, manage, body(s.app.DecidePin)},
		{get, "/v1/approvals", authn.Member, anybody(), plain(s.app.ListApprovals)},
		{post, "/v1/approvals/:id", authn.Member, manage, body(s.app.DecideApproval)},
		{get, "/v1/approvals/always", authn.Member, manage, plain(s.app.ListStanding)},
		{del, "/v1/approvals/always/:id", authn.Member, manage, plain(s.app.Withdraw)},
	}
}

// accountRoutes returns the routes for linked accounts. The pages authenticate the browser themselves.
func (s *Server) accountRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{get, "/v1/accounts", authn.Member, anybody(), plain(s.account.List)},
		{post, "/v1/accounts", authn.Member, anybody(), body(s.account.Link)},
		{post, "/v1/accounts/device", authn.Member, anybody(), body(s.account.Device)},
		{get, "/v1/accounts/link", authn.Anyone, anybody(), plain(s.account.Page)},
		{post, "/v1/accounts/link", authn.Anyone, anybody(), plain(s.account.Agree)},
		{get, "/v1/accounts/callback", authn.Anyone, anybody(), plain(s.account.Callback)},
		{get, "/v1/accounts/client", authn.Anyone, anybody(), plain(s.account.Client)},
		{patch, "/v1/accounts/:id", authn.Member, anybody(), body(s.account.Change)},
		{del, "/v1/accounts/:id", authn.Member, anybody(), plain(s.account.Unlink)},
	}
}

// chatRoutes returns the routes for chat and conversations.
func (s *Server) chatRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{post, "/v1/chat", authn.Member, anybody(), body(s.conversations.SendMessage).upTo(maxChat)},
		{post, "/v1/chat/stream", authn.Member, anybody(), body(s.conversations.StreamMessage).upTo(maxChat)},
		{post, "/v1/chat/elicitations/:id", authn.Member, anybody(), body(s.conversations.AnswerElicitation)},

		{get, "/v1/conversations", authn.Member, anybody(), plain(s.conversations.ListConversations)},
		{post, "/v1/conversations/delete", authn.Member, anybody(), body(s.conversations.DeleteConversations)},
		{post, "/v1/conversations/import", authn.Member, anybody(), body(s.conversations.ImportConversation).upTo(maxImport)},
		{get, "/v1/conversations/:id", authn.Member, anybody(), plain(s.conversations.GetConversation)},
		{get, "/v1/conversations/:id/export", authn.Member, anybody(), large(plain(s.conversations.ExportConversation))},
		{get, "/v1/conversations/:id/attachments/:attachment", authn.Member, anybody(), large(plain(s.conversations.GetAttachment))},
		{get, "/v1/conversations/:id/history", authn.Member, anybody(), large(plain(s.conversations.GetHistory))},
		{get, "/v1/conversations/:id/run", authn.Member, anybody(), plain(s.conversations.FollowRun)},
		{del, "/v1/conversations/:id/run", authn.Member, anybody(), plain(s.conversations.StopRun)},
		{get, "/v1/conversations/:id/queue", authn.Member, anybody(), plain(s.conversations.GetQueued)},
		{del, "/v1/conversations/:id/queue", authn.Member, anybody(), plain(s.conversations.WithdrawQueued)},
		{del, "/v1/conversations/:id", authn.Member, anybody(), plain(s.conversations.DeleteConversation)},
		{patch, "/v1/conversations/:id", authn.Member, anybody(), body(s.conversations.UpdateConversation)},
		{post, "/v1/conversations/:id/fork", authn.Member, anybody(), optionalBody(s.conversations.ForkConversation)},

		{get, "/v1/usage", authn.Member, anybody(), plain(s.conversations.GetUsage)},
		{get, "/v1/skills", authn.Member, anybody(), plain(s.conversations.ListSkills)},
	}
}

// peopleRoutes returns the routes for users, workspaces, members and API keys.
func (s *Server) peopleRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	manageViews := core.Requirement{Role: core.WorkspaceAdmin}
	users, workspaces, members := people.ManageUsers(), people.ManageWorkspaces(), people.ManageMembers()
	return []route{
		{get, "/v1/users", authn.Member, users, plain(s.admin.ListUsers)},
		{patch, "/v1/users/:id", authn.Member, users, body(s.admin.UpdateUser)},
		{del, "/v1/users/:id", authn.Member, users, plain(s.admin.DeleteUser)},
		{post, "/v1/users/:id/merge", authn.Member, users, body(s.admin.MergeUser)},

		{get, "/v1/workspaces", authn.Member, workspaces, plain(s.admin.ListWorkspaces)},
		{post, "/v1/workspaces", authn.Member, workspaces, body(s.admin.CreateWorkspace)},
		{patch, "/v1/workspaces/:id", authn.Member, workspaces, body(s.admin.RenameWorkspace)},
		{del, "/v1/workspaces/:id", authn.Member, workspaces, plain(s.admin.DeleteWorkspace)},
		{get, "/v1/workspaces/:id/members", authn.Member, members, plain(s.admin.ListMembers)},
		{post, "/v1/workspaces/:id/members", authn.Member, members, body(s.admin.PutMember)},
		{del, "/v1/workspaces/:id/members/:user", authn.Member, members, plain(s.admin.RemoveMember)},

		{get, "/v1/views", authn.Member, manageViews, plain(s.admin.ListViews)},
		{post, "/v1/views", authn.Member, manageViews, body(s.admin.SetView)},
		{del, "/v1/views/:name", authn.Member, manageViews, plain(s.admin.RemoveView)},

		{get, "/v1/keys", authn.Member, anybody(), plain(s.admin.ListKeys)},
		{post, "/v1/keys", authn.Member, people.MakeKey(), body(s.admin.CreateKey)},
		{del, "/v1/keys/:id", authn.Member, anybody(), plain(s.admin.RevokeKey)},
	}
}

// serverRoutes returns the routes for the server itself.
func (s *Server) serverRoutes() []route {
	const get, patch = fiber.MethodGet, fiber.MethodPatch
	organization := core.Requirement{Role: core.OrganizationAdmin}
	return []route{
		{get, "/v1/models", authn.Member, anybody(), plain(s.admin.ListModels)},
		{patch, "/v1/models", authn.Member, chat.SetModels(), body(s.admin.UpdateModels)},
		{get, "/v1/registries", authn.Member, anybody(), plain(s.admin.ListRegistries)},
		{get, "/v1/registries/search", authn.Member, core.Requirement{Flags: []string{config.FlagBundleDiscovery}}, plain(s.admin.SearchRegistries)},
		{get, "/v1/config", authn.Member, organization, plain(s.admin.ListSettings)},
		{get, "/v1/plugins", authn.Member, organization, plain(s.admin.ListPlugins)},
		{get, "/v1/audit", authn.Member, core.Requirement{Role: core.EitherAdmin}, plain(s.admin.ListAudit)},
		{get, "/v1/metrics", authn.Identity, organization, plain(s.getMetrics)},
		{get, "/v1/openapi.json", authn.Identity, anybody(), plain(s.getOpenAPI)},
		{get, "/v1/health", authn.Anyone, anybody(), plain(s.health)},
		{get, "/v1/bundles/health", authn.Anyone, anybody(), plain(s.bundlesHealth)},
	}
}
