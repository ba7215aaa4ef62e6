package mcphttp

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestBrokenBodiesAreRefusedAndHarmless(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	random := rand.New(rand.NewPCG(3, 4))
	seeds := []string{ping, hello("2025-11-25"), callBody(1, "demo__echo", `{"a":[1,{"b":null}]}`), progressBody(1, "t", 1), `[` + ping + `]`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`}
	for range 5000 {
		body := []byte(seeds[random.IntN(len(seeds))])
		for range 1 + random.IntN(4) {
			switch at := random.IntN(len(body)); random.IntN(4) {
			case 0:
				body[at] = byte(random.IntN(256))
			case 1:
				body = body[:at+1]
			case 2:
				body = append(body[:at:at], append([]byte(`{"[`), body[at:]...)...)
			case 3:
				body = append(body[:at:at], body[min(at+random.IntN(8), len(body)):]...)
			}
			if len(body) == 0 {
				body = []byte("{")
			}
		}
		who := w
		if random.IntN(3) == 0 {
			who = alice
		}
		if resp, answer := r.say("POST", who, string(body)); resp.StatusCode >= 500 || resp.StatusCode == 429 {
			if resp.StatusCode == 429 { // some were still a valid initialize
				r.say("DELETE", r.liveOne(), "")
				continue
			}
			t.Fatalf("%q: %d %s", body, resp.StatusCode, answer)
		}
	}
	if _, answer := r.say("POST", r.join(who{token: "bob", workspace: "ws_one"}), ping); !strings.Contains(answer, "result") {
		t.Errorf("afterwards: %s", answer)
	}
}
