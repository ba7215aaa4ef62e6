package console

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// A person logs in, installs an app, chats, approves a call and logs out using only the keyboard. The focus is always
// visible. It stays inside dialogs. When Escape closes a dialog or menu, the focus returns to the element that opened
// it.
func TestTheConsoleCanBeUsedWithOnlyTheKeyboard(t *testing.T) {
	t.Parallel()
	const key = "a-test-key-0123456789"
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A greeting"}}`,
		`{"match":{"toolCallId":"g1"},"response":{"content":"You are greeted."}}`,
		`{"match":{"userMessage":"greet me"},"response":{"toolCalls":[{"id":"g1","name":"greeter__greet","arguments":{}}]}}`,
	)
	s := serve(t, "apiKey: "+key+"\ntools: {approve: [greeter__greet]}\n"+models(p))
	s.Key = key
	browse(t, "keyboard.mjs", s, map[string]any{"key": key, "bundle": unpacked(t,
		greeter(t, "greeter", "Greeter", option("greeting", "Greeting", "The greeting that the tool returns."), map[string]string{"GREETING_TOKEN": "${user_config.greeting}"}))})
}
