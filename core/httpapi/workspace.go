package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/chatapi"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// workspaceResponse is what a client needs at its start. Model is null when none is configured.
type workspaceResponse struct {
	Workspace           core.Workspace                `json:"workspace"`
	Workspaces          []core.Workspace              `json:"workspaces"`
	User                core.User                     `json:"user"`
	Model               *string                       `json:"model"`
	Apps                []core.App                    `json:"apps"`
	RecentConversations []chatapi.ConversationSummary `json:"recentConversations"`
	Status              workspaceStatus               `json:"status"`
	Version             string                        `json:"version"`
}

type workspaceStatus struct {
	Uptime     float64 `json:"uptime"` // seconds since the server started
	TotalTools int     `json:"totalTools"`
}

// getWorkspace is GET /v1/workspace and GET /v1/bootstrap.
func (s *Server) getWorkspace(c *fiber.Ctx, caller core.Caller) error {
	workspaces, err := s.access.Workspaces(c.UserContext(), caller.Identity)
	if err != nil {
		return err
	}
	recent, err := s.chat.Recent(c.UserContext(), caller)
	if err != nil {
		return err
	}
	return c.JSON(workspaceResponse{
		Workspace: caller.Workspace, Workspaces: respond.OrEmpty(workspaces), User: caller.User, Model: respond.OrNull(s.chat.Model(c.UserContext())),
		Apps: respond.OrEmpty(s.apps.List(caller.Workspace.ID)), RecentConversations: chatapi.SummariesOf(recent),
		Status:  workspaceStatus{Uptime: s.uptime(), TotalTools: len(s.tools.List(caller))},
		Version: s.version,
	})
}
