package httpapi

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/chatapi"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// workspaceResponse is what a client needs at its start. Model is null when none can be asked, and
// ModelError says why.
type workspaceResponse struct {
	Workspace           core.Workspace                `json:"workspace"`
	Workspaces          []core.Workspace              `json:"workspaces"`
	User                core.User                     `json:"user"`
	Model               *string                       `json:"model"`
	ModelError          string                        `json:"modelError,omitempty"`
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
	model, reason, err := s.currentModel(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(workspaceResponse{
		Workspace: caller.Workspace, Workspaces: respond.OrEmpty(workspaces), User: caller.User, Model: respond.OrNull(model), ModelError: reason,
		Apps: respond.OrEmpty(s.apps.List(caller.Workspace.ID)), RecentConversations: chatapi.SummariesOf(recent),
		Status:  workspaceStatus{Uptime: s.uptime(), TotalTools: len(s.tools.List(caller))},
		Version: s.version,
	})
}

// currentModel returns the model of chats, or the reason why none can be asked.
func (s *Server) currentModel(ctx context.Context) (model, reason string, err error) {
	model, err = s.chat.Model(ctx)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeModelNotConfigured {
		return "", e.Message, nil
	}
	return model, "", err
}
