package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Named is something with an id and the names that people know it by.
type Named struct {
	ID    string
	Names []string
}

// UnknownError is the error of Pick if nothing has the id or name.
type UnknownError struct{ Kind, Meant string }

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %q; `ropewalk %s list` shows them", e.Kind, e.Meant, e.Kind)
	if e.Kind == "user" {
		text += "; people are added when they first log in"
	}
	return text
}

// Pick returns the id of the entry with a given id, or with a name that no other entry has. Names are compared
// case-insensitively. kind, such as "workspace", is for errors.
func Pick(kind, meant string, all []Named) (string, error) {
	var found []string
	for _, n := range all {
		if n.ID == meant {
			return n.ID, nil
		}
		if slices.ContainsFunc(n.Names, func(name string) bool { return name != "" && strings.EqualFold(name, meant) }) {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", &UnknownError{kind, meant}
	case 1:
		return found[0], nil
	}
	return "", Usage(fmt.Errorf("%q is the name of %d %ss; specify one by its id: %s", meant, len(found), kind, strings.Join(found, ", ")))
}

// workspaceID is the prefix of every workspace id.
const workspaceID = "ws_"

// Workspace returns the id of a workspace, given its id or name. It looks among the caller's workspaces, then
// among the organization's if the caller may list them.
func Workspace(ctx context.Context, client *apiclient.Client, meant string) (string, error) {
	if strings.HasPrefix(meant, workspaceID) {
		return meant, nil
	}
	anywhere := *client // the workspace of the requests may be the one we are looking for
	anywhere.Workspace = ""
	var missing error
	for _, path := range []string{"/v1/workspace", "/v1/workspaces"} {
		var answer struct{ Workspaces []struct{ ID, Name string } }
		if err := anywhere.Get(ctx, path, nil, &answer); err != nil {
			if missing != nil {
				return "", missing
			}
			return "", err
		}
		all := make([]Named, len(answer.Workspaces))
		for i, w := range answer.Workspaces {
			all[i] = Named{w.ID, []string{w.Name}}
		}
		id, err := Pick("workspace", meant, all)
		if _, unknown := errors.AsType[*UnknownError](err); !unknown {
			return id, err
		}
		missing = err
	}
	return "", missing
}
