package chat

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// SetModelConfig is system__set_model_config, for admins of the organization. What it sets goes
// before the configuration, at once and also after a new start.
func (e *Engine) SetModelConfig() tools.System {
	return tools.System{
		Name: "set_model_config", Title: "Set the models", AdminOnly: true,
		Description: "Sets the model of chats (default) and the one of small things such as titles (fast), each as provider:model. " +
			"An empty text goes back to the configuration's. Without either it tells which are in force.",
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
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, core.Errorf(core.CodeBadRequest, "arguments: %w", err)
			}
			return e.setModels(ctx, in.Default, in.Fast)
		},
	}
}

func (e *Engine) setModels(ctx context.Context, byDefault, fast *string) (any, error) {
	m := e.models.Load()
	for _, name := range []*string{byDefault, fast} {
		if name == nil || *name == "" {
			continue
		}
		if _, err := m.find(*name); err != nil {
			return nil, err
		}
	}
	for setting, name := range map[string]*string{settingDefault: byDefault, settingFast: fast} {
		if name == nil {
			continue
		}
		if err := e.store.PutSetting(ctx, setting, *name); err != nil {
			return nil, err
		}
	}
	now := map[string]string{}
	for key, from := range map[string]struct{ setting, configured string }{
		"default": {settingDefault, m.byDefault}, "fast": {settingFast, m.fast},
	} {
		var err error
		if now[key], err = e.currentModel(ctx, from.setting, from.configured); err != nil {
			return nil, err
		}
	}
	return now, nil
}
