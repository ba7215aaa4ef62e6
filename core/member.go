package core

import "time"

// Member is a user in a workspace, with the role there.
type Member struct {
	User User `json:"user"`
	Role Role `json:"role"` // admin or member
}

// WorkspaceInfo is a workspace as those see it who manage all of them.
type WorkspaceInfo struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	PersonalOf string    `json:"personalOf,omitempty"` // User.ID of the one whose personal workspace it is
	Members    int       `json:"members"`
	CreatedAt  time.Time `json:"createdAt"`
}
