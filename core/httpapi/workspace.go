package httpapi

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/gofiber/fiber/v2"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/chatapi"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// workspaceResponse contains what a client needs when it starts. If no model can be used, Model is null and ModelError
// contains the reason.
type workspaceResponse struct {
	Workspace           core.Workspace                `json:"workspace"`
	Workspaces          []core.Workspace              `json:"workspaces"`
	Instructions        string                        `json:"instructions"` // part of every system prompt
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

// getWorkspace handles GET /v1/workspace and GET /v1/bootstrap.
func (s *Server) getWorkspace(c *fiber.Ctx, caller core.Caller) (any, error) {
	workspaces, err := s.access.Workspaces(c.UserContext(), caller.Identity)
	if err != nil {
		return nil, err
	}
	recent, err := s.chat.Recent(c.UserContext(), caller)
	if err != nil {
		return nil, err
	}
	instructions, err := s.chat.Instructions(c.UserContext(), caller)
	if err != nil {
		return nil, err
	}
	model, reason, err := s.currentModel(c.UserContext())
	if err != nil {
		return nil, err
	}
	return workspaceResponse{
		Workspace: caller.Workspace, Workspaces: httpio.OrEmpty(workspaces), User: caller.User,
		Instructions: instructions, Model: httpio.OrNull(model), ModelError: reason,
		Apps: httpio.OrEmpty(caller.AppsFor(s.apps.List(caller.Workspace.ID))), RecentConversations: chatapi.SummariesOf(recent),
		Status:  workspaceStatus{Uptime: s.uptime(), TotalTools: len(s.tools.List(caller))},
		Version: s.version,
	}, nil
}

type workspacePatch struct {
	Instructions *string `json:"instructions"`
}

// updateWorkspace handles PATCH /v1/workspace.
func (s *Server) updateWorkspace(c *fiber.Ctx, caller core.Caller, r workspacePatch) (any, error) {
	if r.Instructions == nil {
		return nil, core.Errorf(core.CodeBadRequest, "instructions is missing; set it to an empty string to remove the instructions")
	}
	if err := s.chat.SetInstructions(c.UserContext(), caller, *r.Instructions); err != nil {
		return nil, err
	}
	return s.getWorkspace(c, caller)
}

// currentModel returns the model that chats use, or the reason why no model can be used.
func (s *Server) currentModel(ctx context.Context) (model, reason string, err error) {
	model, err = s.chat.Model(ctx)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeModelNotConfigured {
		return "", e.Message, nil
	}
	return model, "", err
}

//go:embed openapi.yaml
var openapi []byte

// OpenAPI returns the OpenAPI document, in YAML.
func OpenAPI() []byte { return openapi }

// getOpenAPI handles GET /v1/openapi.json.
func (s *Server) getOpenAPI(c *fiber.Ctx, _ core.Caller) (any, error) {
	var document any
	if err := yaml.Unmarshal(openapi, &document); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return nil, httpio.JSON(c, encoded)
}
