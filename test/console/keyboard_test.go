package console

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// A person without a pointer logs in, installs an app, chats, approves a call and logs out. The focus can be seen
// wherever it stops, stays inside of dialogs, and returns to what opened a dialog or a menu when Escape closes it.
func TestTheConsoleIsUsedWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-the-tests-0123"
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A greeting"}}`,
		`{"match":{"toolCallId":"g1"},"response":{"content":"You are greeted."}}`,
		`{"match":{"userMessage":"greet me"},"response":{"toolCalls":[{"id":"g1","name":"greeter__greet","arguments":{}}]}}`,
	)
	s := serve(t, "apiKey: "+key+"\ntools: {approve: [greeter__greet]}\n"+models(p))
	s.Key = key
	browse(t, "keyboard.mjs", s, map[string]any{"key": key, "bundle": unpacked(t,
		greeter(t, "greeter", "Greeter", option("greeting", "Greeting", "What it says."), map[string]string{"GREETING_TOKEN": "${user_config.greeting}"}))})
}
