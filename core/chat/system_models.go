package chat

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// SetModelConfig returns system__set_model_config, for admins of the organization. Its settings override the
// configuration immediately and survive a restart.
func (e *Engine) SetModelConfig() tools.System {
	return tools.System{
		Name: "set_model_config", Title: "Set the models", Requirement: SetModels(),
		Description: "Sets the model for chats (default) and the one for small tasks such as titles (fast), each as provider:model. " +
			"An empty string restores the configured model. Without either, returns the models in use.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "default": {"type": "string", "description": "provider:model, such as anthropic:claude-sonnet-5"},
    "fast": {"type": "string", "description": "provider:model"}
  },
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, _ core.Caller, arguments json.RawMessage) (any, error) {
			var in struct {
				Default *string `json:"default"`
				Fast    *string `json:"fast"`
			}
			if err := tools.Arguments(arguments, &in); err != nil {
				return nil, err
			}
			return e.SetModels(ctx, in.Default, in.Fast)
		},
	}
}

// SetModels returns the requirement for Engine.SetModels.
func SetModels() core.Requirement { return core.Requirement{Role: core.OrganizationAdmin} }

// ModelNames names the current models, each as provider:model.
type ModelNames struct {
	Default string `json:"default"`
	Fast    string `json:"fast"`
}

// SetModels sets the default model and the fast model. nil leaves a model unchanged, and "" goes back to the
// configuration. It returns the models that are now in use.
func (e *Engine) SetModels(ctx context.Context, byDefault, fast *string) (ModelNames, error) {
	m := e.models.Load()
	for _, name := range []*string{byDefault, fast} {
		if name == nil || *name == "" {
			continue
		}
		if _, err := m.find(*name); err != nil {
			return ModelNames{}, err
		}
	}
	for setting, name := range map[string]*string{settingDefault: byDefault, settingFast: fast} {
		if name == nil {
			continue
		}
		if err := e.store.PutSetting(ctx, setting, *name); err != nil {
			return ModelNames{}, err
		}
	}
	set, err := e.ModelSettings(ctx)
	return ModelNames{set.Default, set.Fast}, err
}
