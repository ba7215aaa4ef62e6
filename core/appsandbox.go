package core

// AppSandbox says how the processes of an app are confined.
type AppSandbox struct {
	Level   string   `json:"level"`            // none, landlock or namespaces
	Network []string `json:"network"`          // none, loopback-off or all, or the allowed destinations
	OwnUser bool     `json:"ownUser"`          // the server gives the app a user id of its own, where its files allow it
	Weaker  string   `json:"weaker,omitempty"` // why the level is lower than configured; "" when it is not
}
