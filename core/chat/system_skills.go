package chat

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
)

// ManageSkills returns system__manage_skills, which is available while the skillManagement flag is on. Everyone may
// read skills; workspace admins may change those of their workspace. The skills of the default workspace are in every
// prompt of the instance, so changing them requires an admin of the organization.
func (e *Engine) ManageSkills() tools.System {
	return tools.System{
		Name: "manage_skills", Title: "Manage skills", Requirement: core.Requirement{Flags: []string{config.FlagSkillManagement}},
		Description: "Lists, reads, writes or deletes skills: instructions that tell the assistant how to do something. " +
			"A skill of type context is added to every prompt; one of type skill only if a message contains one of its triggers, or two of its keywords.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "get", "put", "delete"]},
    "name": {"type": "string", "description": "get, put, delete: lower-case letters, digits and hyphens"},
    "description": {"type": "string", "description": "put"},
    "type": {"type": "string", "enum": ["context", "skill"], "default": "skill", "description": "put"},
    "priority": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 50, "description": "put: the lower one comes first"},
    "triggers": {"type": "array", "items": {"type": "string"}, "description": "put"},
    "keywords": {"type": "array", "items": {"type": "string"}, "description": "put"},
    "allowedTools": {"type": "array", "items": {"type": "string"}, "description": "put: patterns of the tools it may use, such as files__*; all if left out"},
    "body": {"type": "string", "description": "put: what to do, in Markdown"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			in := manageSkills{Type: skill.TypeSkill, Priority: 50}
			if err := tools.Arguments(arguments, &in); err != nil {
				return nil, err
			}
			return in.run(ctx, e, c)
		},
	}
}

type manageSkills struct {
	Action       string   `json:"action"`
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Type         string   `json:"type"`
	Priority     int      `json:"priority"`
	Triggers     []string `json:"triggers"`
	Keywords     []string `json:"keywords"`
	AllowedTools []string `json:"allowedTools"`
	Body         string   `json:"body"`
}

func (in manageSkills) run(ctx context.Context, e *Engine, c core.Caller) (any, error) {
	switch in.Action {
	case "list":
		return map[string]any{"skills": e.skills.Skills(c.Workspace.ID)}, nil
	case "get":
		for _, s := range e.skills.Skills(c.Workspace.ID) {
			if s.Name == in.Name {
				return map[string]any{"skill": s, "body": s.Body}, nil
			}
		}
		return nil, core.Errorf(core.CodeNotFound, "there is no skill %q in this workspace", in.Name)
	}
	if err := mayManageSkills(c); err != nil {
		return nil, err
	}
	if in.Action == "delete" {
		if err := e.skills.Delete(ctx, c.Workspace.ID, in.Name); err != nil {
			return nil, err
		}
		return map[string]any{"name": in.Name, "deleted": true}, nil
	}
	if err := checkGlobs("allowedTools", in.AllowedTools); err != nil {
		return nil, err
	}
	return e.skills.Put(ctx, c.Workspace.ID, skill.Skill{
		Name: in.Name, Description: in.Description, Type: in.Type, Priority: in.Priority,
		Triggers: in.Triggers, Keywords: in.Keywords, AllowedTools: in.AllowedTools, Body: in.Body,
	})
}

func mayManageSkills(c core.Caller) error {
	if c.Workspace.ID == core.DefaultWorkspaceID && !c.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "everyone uses the skills of the default workspace: changing them requires an organization admin or owner")
	}
	if !c.Workspace.Role.Admin() {
		return core.Errorf(core.CodeForbidden, "changing skills requires the admin role in workspace %s", c.Workspace.ID)
	}
	return nil
}
