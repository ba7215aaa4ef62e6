package core

// ModelSettings specifies which models chats use. Default and Fast have the form provider:model, or "" if none is set.
type ModelSettings struct {
	Default   string
	Fast      string // for small tasks such as titles; "" means Default
	Providers []ModelProvider
}

// ModelProvider is a configured provider of models.
type ModelProvider struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"` // whether it has a key, or needs none
}
