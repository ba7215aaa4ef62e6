package core

// Registry is a configured bundle registry.
type Registry struct {
	Name    string `json:"name"`
	Adapter string `json:"adapter"`
}
