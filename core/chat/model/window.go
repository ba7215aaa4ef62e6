package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// maxList limits how many bytes of a provider's list of models are read.
const maxList = 8 << 20

// windowMembers returns the names of the member for the context size in the lists from vLLM, OpenRouter, Mistral, Groq and
// Anthropic. The size that the server was started with comes before the size that the model supports.
func windowMembers() []string {
	return []string{"max_model_len", "context_length", "max_context_length", "context_window", "max_input_tokens"}
}

// ListedWindow returns the context size of a model, in tokens, from the provider's list of models at url. It returns
// 0 if the list does not contain it or cannot be fetched.
func ListedWindow(ctx context.Context, client *http.Client, url string, header http.Header, name string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	r.Header = header.Clone()
	r.Header.Set("User-Agent", "ropewalk")
	response, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []map[string]json.RawMessage `json:"data"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(&list) != nil {
		return 0
	}
	for _, m := range list.Data {
		if stringOf(m["id"]) != name {
			continue
		}
		for _, member := range windowMembers() {
			var tokens int
			if json.Unmarshal(m[member], &tokens) == nil && tokens > 0 {
				return tokens
			}
		}
	}
	return 0
}
