package chat

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	iterationsDefault = 25
	iterationsMost    = 50
)

// Request is a person's message.
type Request struct {
	Message        string          `json:"message"`
	ConversationID string          `json:"conversationId"`
	Model          string          `json:"model"`
	AppContext     *AppContext     `json:"appContext"`
	Metadata       json.RawMessage `json:"metadata"` // for a conversation that this request creates
	AllowedTools   []string        `json:"allowedTools"`
	MaxIterations  *int            `json:"maxIterations"` // above 50 means 50
	Attachments    []Attachment    `json:"attachments"`
	Detach         bool            `json:"detach"`       // the run continues if the client disconnects
	Effort         string          `json:"effort"`       // reasoning effort, one of model.Efforts; "" leaves it to the provider
	DisabledApps   []string        `json:"disabledApps"` // apps disabled in the conversation from now on; nil keeps the current ones
	Queue          bool            `json:"queue"`        // the message waits while a run is active in the conversation

	queued string // the id of the core.QueuedMessage that this request comes from
}

// AppContext is the app that the person is looking at.
type AppContext struct {
	AppName    string `json:"appName"`
	ServerName string `json:"serverName"`
}

func (r Request) check() error {
	if strings.TrimSpace(r.Message) == "" && len(r.Attachments) == 0 { // an attachment alone is a valid message
		return core.Errorf(core.CodeBadRequest, "message is required")
	}
	if r.MaxIterations != nil && *r.MaxIterations < 1 {
		return core.Errorf(core.CodeBadRequest, "maxIterations must be at least 1")
	}
	if r.Effort != "" && !slices.Contains(model.Efforts(), r.Effort) {
		return core.Errorf(core.CodeBadRequest, "effort must be one of %s", strings.Join(model.Efforts(), ", "))
	}
	if !isObject(r.Metadata) {
		return core.Errorf(core.CodeBadRequest, "metadata must be an object")
	}
	if err := checkAttachments(r.Attachments); err != nil {
		return err
	}
	if err := checkDisabledApps(r.DisabledApps); err != nil {
		return err
	}
	return checkGlobs("allowedTools", r.AllowedTools)
}

const (
	maxDisabledApps = 500
	maxAppName      = 100 // bytes
)

// checkDisabledApps checks app names. Apps that are not installed are allowed, because an app may be reinstalled.
// again.
func checkDisabledApps(names []string) error {
	if len(names) > maxDisabledApps {
		return core.Errorf(core.CodeBadRequest, "disabledApps may list at most %d apps", maxDisabledApps)
	}
	for i, name := range names {
		if name == "" || len(name) > maxAppName {
			return core.Errorf(core.CodeBadRequest, "disabledApps[%d] must be the short name of an app, as in GET /v1/apps", i)
		}
	}
	return nil
}

// isObject reports whether raw is absent, null or a JSON object.
func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return len(raw) == 0 || json.Unmarshal(raw, &object) == nil
}

func checkGlobs(field string, globs []string) error {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return core.Errorf(core.CodeBadRequest, "%s contains %q, which is not a valid pattern; use *, ? and [ ] with characters in between, as in files__*", field, g)
		}
	}
	return nil
}

func (r Request) iterations() int {
	if r.MaxIterations == nil {
		return iterationsDefault
	}
	return min(*r.MaxIterations, iterationsMost)
}

// server returns the server name of the app that the person is looking at, or "" if there is none.
func (r Request) server() string {
	if r.AppContext == nil {
		return ""
	}
	if r.AppContext.ServerName != "" {
		return r.AppContext.ServerName
	}
	return r.AppContext.AppName
}
