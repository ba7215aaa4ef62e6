package httpapi

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
)

// route is one line of the route table.
type route struct {
	method  string
	path    string
	handler fiber.Handler
}

// routes is the route table. Each line says what the route requires: nothing (AllowAnyone), a valid
// identity (RequireIdentity), membership of the workspace (RequireMember), or membership of one that the
// query may name (RequireViewer).
func (s *Server) routes() []route {
	return slices.Concat(s.sessionRoutes(), s.appRoutes(), s.chatRoutes(), s.adminRoutes(), s.serverRoutes())
}

// sessionRoutes are the routes of logins, and of what a caller sees first.
func (s *Server) sessionRoutes() []route {
	const get, post = fiber.MethodGet, fiber.MethodPost
	return []route{
		{post, "/v1/auth/login", s.authn.AllowAnyone(s.login.Login)},
		{post, "/v1/auth/logout", s.authn.RequireIdentity(s.login.Logout)},
		{get, "/v1/auth/session", s.authn.RequireIdentity(s.login.Session)},
		{get, "/v1/auth/authorize", s.authn.AllowAnyone(s.login.Authorize)},
		{get, "/v1/auth/callback", s.authn.AllowAnyone(s.login.Callback)},
		{post, "/v1/auth/backchannel-logout", s.authn.AllowAnyone(s.login.BackchannelLogout)},

		{get, "/v1/events", s.authn.RequireViewer(s.streamEvents)},

		{get, "/v1/workspace", s.authn.RequireMember(s.getWorkspace)},
		{get, "/v1/bootstrap", s.authn.RequireMember(s.getWorkspace)},
	}
}

// appRoutes are the routes of apps and their tools.
func (s *Server) appRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{get, "/v1/apps", s.authn.RequireMember(s.app.List)},
		{post, "/v1/apps/install", s.authn.RequireMember(s.app.Install)},
		{post, appapi.UploadPath, s.authn.RequireMember(s.app.Upload)},
		{post, "/v1/apps/import", s.authn.RequireMember(s.app.Import)},
		{get, "/v1/apps/:name", s.authn.RequireMember(s.app.Get)},
		{patch, "/v1/apps/:name", s.authn.RequireMember(s.app.Configure)},
		{post, "/v1/apps/:name/restart", s.authn.RequireMember(s.app.Restart)},
		{post, "/v1/apps/:name/update", s.authn.RequireMember(s.app.Update)},
		{get, "/v1/apps/:name/logs", s.authn.RequireMember(s.app.Logs)},
		{del, "/v1/apps/:name", s.authn.RequireMember(s.app.Uninstall)},
		{post, "/v1/apps/:name/start", s.authn.RequireMember(s.app.Start)},
		{post, "/v1/apps/:name/stop", s.authn.RequireMember(s.app.Stop)},
		{get, "/v1/apps/:name/resources/*", s.authn.RequireViewer(s.app.ReadResource)},

		{get, "/v1/tools", s.authn.RequireMember(s.app.ListTools)},
		{post, "/v1/tools/call", s.authn.RequireMember(s.app.CallTool)},

		{get, "/v1/pins", s.authn.RequireMember(s.trust.ListPins)},
		{get, "/v1/approvals", s.authn.RequireMember(s.trust.ListApprovals)},
		{post, "/v1/approvals/:id", s.authn.RequireMember(s.trust.DecideApproval)},
		{post, "/v1/pins/:id", s.authn.RequireMember(s.trust.DecidePin)},
	}
}

// chatRoutes are the routes of chat and conversations.
func (s *Server) chatRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{post, "/v1/chat", s.authn.RequireMember(s.talk.SendMessage)},
		{post, "/v1/chat/stream", s.authn.RequireMember(s.talk.StreamMessage)},
		{post, "/v1/chat/elicitations/:id", s.authn.RequireMember(s.talk.AnswerElicitation)},

		{get, "/v1/conversations", s.authn.RequireMember(s.talk.ListConversations)},
		{post, "/v1/conversations/delete", s.authn.RequireMember(s.talk.DeleteConversations)},
		{post, "/v1/conversations/import", s.authn.RequireMember(s.talk.ImportConversation)},
		{get, "/v1/conversations/:id", s.authn.RequireMember(s.talk.GetConversation)},
		{get, "/v1/conversations/:id/export", s.authn.RequireMember(s.talk.ExportConversation)},
		{get, "/v1/conversations/:id/attachments/:attachment", s.authn.RequireMember(s.talk.GetAttachment)},
		{get, "/v1/conversations/:id/history", s.authn.RequireMember(s.talk.GetHistory)},
		{del, "/v1/conversations/:id", s.authn.RequireMember(s.talk.DeleteConversation)},
		{patch, "/v1/conversations/:id", s.authn.RequireMember(s.talk.UpdateConversation)},
		{post, "/v1/conversations/:id/fork", s.authn.RequireMember(s.talk.ForkConversation)},
	}
}

// adminRoutes are the routes of people, keys, models and registries.
func (s *Server) adminRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{get, "/v1/users", s.authn.RequireMember(s.admin.ListUsers)},
		{patch, "/v1/users/:id", s.authn.RequireMember(s.admin.UpdateUser)},
		{del, "/v1/users/:id", s.authn.RequireMember(s.admin.DeleteUser)},

		{get, "/v1/workspaces", s.authn.RequireMember(s.admin.ListWorkspaces)},
		{post, "/v1/workspaces", s.authn.RequireMember(s.admin.CreateWorkspace)},
		{patch, "/v1/workspaces/:id", s.authn.RequireMember(s.admin.RenameWorkspace)},
		{del, "/v1/workspaces/:id", s.authn.RequireMember(s.admin.DeleteWorkspace)},
		{get, "/v1/workspaces/:id/members", s.authn.RequireMember(s.admin.ListMembers)},
		{post, "/v1/workspaces/:id/members", s.authn.RequireMember(s.admin.PutMember)},
		{del, "/v1/workspaces/:id/members/:user", s.authn.RequireMember(s.admin.RemoveMember)},

		{get, "/v1/keys", s.authn.RequireMember(s.admin.ListKeys)},
		{post, "/v1/keys", s.authn.RequireMember(s.admin.CreateKey)},
		{del, "/v1/keys/:id", s.authn.RequireMember(s.admin.RevokeKey)},

		{get, "/v1/models", s.authn.RequireMember(s.admin.ListModels)},
		{patch, "/v1/models", s.authn.RequireMember(s.admin.UpdateModels)},

		{get, "/v1/config", s.authn.RequireMember(s.admin.ListSettings)},
		{get, "/v1/plugins", s.authn.RequireMember(s.admin.ListPlugins)},
		{get, "/v1/audit", s.authn.RequireMember(s.admin.ListAudit)},

		{get, "/v1/registries", s.authn.RequireMember(s.admin.ListRegistries)},
		{get, "/v1/registries/search", s.authn.RequireMember(s.admin.SearchRegistries)},
	}
}

// serverRoutes are the routes of the server itself.
func (s *Server) serverRoutes() []route {
	const get = fiber.MethodGet
	return []route{
		{get, "/v1/usage", s.authn.RequireMember(s.talk.GetUsage)},
		{get, "/v1/skills", s.authn.RequireMember(s.talk.ListSkills)},
		{get, "/v1/health", s.authn.AllowAnyone(s.health)},
		{get, "/v1/bundles/health", s.authn.AllowAnyone(s.bundlesHealth)},
		{get, "/v1/openapi.json", s.authn.RequireIdentity(s.getOpenAPI)},
		{get, "/v1/metrics", s.authn.RequireIdentity(s.getMetrics)},
	}
}
