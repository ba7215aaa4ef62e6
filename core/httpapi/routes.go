package httpapi

import (
	"slices"

	"github.com/gofiber/fiber/v2"
)

// route is one line of the route table.
type route struct {
	method  string
	path    string
	handler fiber.Handler
}

// routes is the route table. Each line says what the route requires: nothing (allowAnyone), a valid
// identity (requireIdentity), membership of the workspace (requireMember), or membership of one that the
// query may name (requireViewer).
func (s *Server) routes() []route {
	return slices.Concat(s.sessionRoutes(), s.appRoutes(), s.chatRoutes(), s.adminRoutes(), s.serverRoutes())
}

// sessionRoutes are the routes of logins, and of what a caller sees first.
func (s *Server) sessionRoutes() []route {
	const get, post = fiber.MethodGet, fiber.MethodPost
	return []route{
		{post, "/v1/auth/login", s.allowAnyone(s.login)},
		{post, "/v1/auth/logout", s.requireIdentity(s.logout)},
		{get, "/v1/auth/session", s.requireIdentity(s.getSession)},
		{get, "/v1/auth/authorize", s.allowAnyone(s.authorize)},
		{get, "/v1/auth/callback", s.allowAnyone(s.callback)},

		{get, "/v1/events", s.requireViewer(s.streamEvents)},

		{get, "/v1/workspace", s.requireMember(s.getWorkspace)},
		{get, "/v1/bootstrap", s.requireMember(s.getWorkspace)},
	}
}

// appRoutes are the routes of apps and their tools.
func (s *Server) appRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{get, "/v1/apps", s.requireMember(s.listApps)},
		{post, "/v1/apps/install", s.requireMember(s.installApp)},
		{post, "/v1/apps/upload", s.requireMember(s.uploadApp)},
		{post, "/v1/apps/import", s.requireMember(s.importApps)},
		{get, "/v1/apps/:name", s.requireMember(s.getApp)},
		{patch, "/v1/apps/:name", s.requireMember(s.updateAppSettings)},
		{post, "/v1/apps/:name/restart", s.requireMember(s.restartApp)},
		{post, "/v1/apps/:name/update", s.requireMember(s.updateApp)},
		{get, "/v1/apps/:name/logs", s.requireMember(s.getAppLogs)},
		{del, "/v1/apps/:name", s.requireMember(s.uninstallApp)},
		{post, "/v1/apps/:name/start", s.requireMember(s.startApp)},
		{post, "/v1/apps/:name/stop", s.requireMember(s.stopApp)},
		{get, "/v1/apps/:name/resources/*", s.requireViewer(s.readResource)},

		{get, "/v1/tools", s.requireMember(s.listTools)},
		{post, "/v1/tools/call", s.requireMember(s.callTool)},
	}
}

// chatRoutes are the routes of chat and conversations.
func (s *Server) chatRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{post, "/v1/chat", s.requireMember(s.sendMessage)},
		{post, "/v1/chat/stream", s.requireMember(s.streamMessage)},
		{post, "/v1/chat/elicitations/:id", s.requireMember(s.answerElicitation)},

		{get, "/v1/conversations", s.requireMember(s.listConversations)},
		{post, "/v1/conversations/delete", s.requireMember(s.deleteConversations)},
		{post, "/v1/conversations/import", s.requireMember(s.importConversation)},
		{get, "/v1/conversations/:id", s.requireMember(s.getConversation)},
		{get, "/v1/conversations/:id/export", s.requireMember(s.exportConversation)},
		{get, "/v1/conversations/:id/attachments/:attachment", s.requireMember(s.getAttachment)},
		{get, "/v1/conversations/:id/history", s.requireMember(s.getHistory)},
		{del, "/v1/conversations/:id", s.requireMember(s.deleteConversation)},
		{patch, "/v1/conversations/:id", s.requireMember(s.updateConversation)},
		{post, "/v1/conversations/:id/fork", s.requireMember(s.forkConversation)},
	}
}

// adminRoutes are the routes of people, keys, models and registries.
func (s *Server) adminRoutes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{get, "/v1/users", s.requireMember(s.listUsers)},
		{patch, "/v1/users/:id", s.requireMember(s.updateUser)},
		{del, "/v1/users/:id", s.requireMember(s.deleteUser)},

		{get, "/v1/workspaces", s.requireMember(s.listWorkspaces)},
		{post, "/v1/workspaces", s.requireMember(s.createWorkspace)},
		{patch, "/v1/workspaces/:id", s.requireMember(s.renameWorkspace)},
		{del, "/v1/workspaces/:id", s.requireMember(s.deleteWorkspace)},
		{get, "/v1/workspaces/:id/members", s.requireMember(s.listMembers)},
		{post, "/v1/workspaces/:id/members", s.requireMember(s.putMember)},
		{del, "/v1/workspaces/:id/members/:user", s.requireMember(s.removeMember)},

		{get, "/v1/keys", s.requireMember(s.listKeys)},
		{post, "/v1/keys", s.requireMember(s.createKey)},
		{del, "/v1/keys/:id", s.requireMember(s.revokeKey)},

		{get, "/v1/models", s.requireMember(s.listModels)},
		{patch, "/v1/models", s.requireMember(s.updateModels)},

		{get, "/v1/registries", s.requireMember(s.listRegistries)},
		{get, "/v1/registries/search", s.requireMember(s.searchRegistries)},
	}
}

// serverRoutes are the routes of the server itself.
func (s *Server) serverRoutes() []route {
	const get = fiber.MethodGet
	return []route{
		{get, "/v1/usage", s.requireMember(s.getUsage)},
		{get, "/v1/skills", s.requireMember(s.listSkills)},
		{get, "/v1/health", s.allowAnyone(s.health)},
		{get, "/v1/bundles/health", s.allowAnyone(s.bundlesHealth)},
		{get, "/v1/openapi.json", s.requireIdentity(s.getOpenAPI)},
		{get, "/v1/metrics", s.requireIdentity(s.getMetrics)},
	}
}
