package httpapi

import "github.com/gofiber/fiber/v2"

// route is one line of spec part 4.
type route struct {
	method  string
	path    string
	handler fiber.Handler
}

// routes mirrors the table of spec part 4 and those of the contract. Each line says what the route
// needs: anyone, known (a proven identity), or member (an identity in a workspace it belongs to).
func (s *Server) routes() []route {
	const get, post, patch, del = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	return []route{
		{post, "/v1/auth/login", s.anyone(s.login)},
		{post, "/v1/auth/logout", s.known(s.logout)},
		{get, "/v1/auth/session", s.known(s.session)},
		{get, "/v1/auth/authorize", s.anyone(s.authorize)},
		{get, "/v1/auth/callback", s.anyone(s.callback)},

		{post, "/v1/chat", s.member(s.sayChat)},
		{post, "/v1/chat/stream", s.member(s.streamChat)},
		{post, "/v1/chat/elicitations/:id", s.member(s.answerElicitation)},

		{get, "/v1/apps", s.member(s.listApps)},
		{post, "/v1/apps/install", s.member(s.installApp)},
		{del, "/v1/apps/:name", s.member(s.uninstallApp)},
		{post, "/v1/apps/:name/start", s.member(s.startApp)},
		{post, "/v1/apps/:name/stop", s.member(s.stopApp)},
		{get, "/v1/apps/:name/resources/*", s.member(s.readResource)},

		{post, "/v1/tools/call", s.member(s.callTool)},

		{get, "/v1/conversations", s.member(s.listConversations)},
		{get, "/v1/conversations/:id/history", s.member(s.showHistory)},
		{del, "/v1/conversations/:id", s.member(s.deleteConversation)},
		{patch, "/v1/conversations/:id", s.member(s.editConversation)},
		{post, "/v1/conversations/:id/fork", s.member(s.forkConversation)},

		{get, "/v1/events", s.member(s.streamEvents)},

		{get, "/v1/workspace", s.member(s.showWorkspace)},
		{get, "/v1/bootstrap", s.member(s.showWorkspace)},

		{get, "/v1/usage", s.member(s.showUsage)},
		{get, "/v1/skills", s.member(s.listSkills)},

		{get, "/v1/health", s.anyone(s.health)},
		{get, "/v1/bundles/health", s.anyone(s.bundlesHealth)},

		{get, "/v1/openapi.json", s.known(s.describeAPI)},
		{get, "/v1/metrics", s.known(s.showMetrics)},
	}
}
