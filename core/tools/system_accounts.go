package tools

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// AccountDirectory lists and changes linked accounts. *accounts.Manager implements it.
type AccountDirectory interface {
	List(ctx context.Context, c core.Caller) ([]core.Account, error)
	MayLink(ctx context.Context, c core.Caller, app string) error
	LinkURL(c core.Caller, app, name string, scopes []string) string
	Change(ctx context.Context, c core.Caller, id string, change core.AccountChange) (core.Account, error)
	Unlink(ctx context.Context, c core.Caller, id string) error
}

// AccountApps knows which apps use accounts. *apps.Manager implements it.
type AccountApps interface {
	List(workspace string) []core.App
	UsesAccounts(workspace string) bool
}

// listedAccount is an account as system__accounts shows it.
type listedAccount struct {
	App     string            `json:"app"`
	Name    string            `json:"name"`
	State   core.AccountState `json:"state"`
	Default bool              `json:"default"`
	Shared  bool              `json:"shared"`
}

// ManageAccounts returns system__accounts. It is listed if an app of the workspace uses accounts.
func ManageAccounts(d AccountDirectory, apps AccountApps) System {
	return System{
		Name: "accounts", Title: "Linked accounts",
		Description: "Lists the accounts that the user has linked for remote apps and the apps that need one, returns the page for linking another, " +
			"makes one its app's default, or unlinks one. To call a tool with a particular account, use that account's tool name, such as github_work__create_issue.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "link", "use", "unlink"]},
    "app": {"type": "string", "description": "the app's short name; all actions except list"},
    "account": {"type": "string", "description": "the account's name; main if absent", "default": "main"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Shown: func(c core.Caller) bool { return apps.UsesAccounts(c.Workspace.ID) },
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			in := struct {
				Action  string `json:"action"`
				App     string `json:"app"`
				Account string `json:"account"`
			}{Account: "main"}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			all, err := d.List(ctx, c)
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(a core.Account) bool { return a.Owner != "" && a.Owner != c.User.ID }) // admins also see other people's accounts
			switch {
			case in.Action == "list":
				return listedAccounts(all, apps.List(c.Workspace.ID)), nil
			case in.App == "":
				return nil, core.Errorf(core.CodeBadRequest, "app is missing; set it to the app's short name")
			case in.Action == "link":
				if err := d.MayLink(ctx, c, in.App); err != nil {
					return nil, err
				}
				return map[string]any{"app": in.App, "account": in.Account, "url": d.LinkURL(c, in.App, in.Account, nil)}, nil
			}
			i := slices.IndexFunc(all, func(a core.Account) bool { return a.App == in.App && a.Name == in.Account })
			if i < 0 {
				return nil, core.Errorf(core.CodeNotFound, "no account %.50q is linked for %.50q", in.Account, in.App)
			}
			if in.Action == "use" {
				_, err := d.Change(ctx, c, all[i].ID, core.AccountChange{Default: true})
				return map[string]any{"app": in.App, "account": in.Account, "default": true}, err
			}
			return map[string]any{"app": in.App, "account": in.Account, "unlinked": true}, d.Unlink(ctx, c, all[i].ID)
		},
	}
}

func listedAccounts(all []core.Account, apps []core.App) map[string]any {
	accounts, takes := []listedAccount{}, []map[string]string{}
	for _, a := range all {
		accounts = append(accounts, listedAccount{a.App, a.Name, a.State, a.Default, a.Owner == ""})
	}
	for _, a := range apps {
		if a.Auth != "" {
			takes = append(takes, map[string]string{"app": a.Name, "auth": a.Auth})
		}
	}
	return map[string]any{"accounts": accounts, "apps": takes}
}
