package rival

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
)

// The service's own client reads the response, to check that the provider implements the protocol correctly.
func TestTheModelReportsWhenItSentEachChunk(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Model(ctx, 20, time.Millisecond, w) }()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base, ok := strings.CutSuffix(strings.TrimSpace(url), "/v1/messages")
	if !ok {
		t.Fatalf("the model printed the address %q", url)
	}
	p := anthropic.New(model.Settings{BaseURL: base, APIKey: "k"})
	for name, want := range map[string]int{"any": 20, "once": 1} {
		var output []string
		response, err := p.Call(ctx, name, model.Request{MaxTokens: 9, Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{Text: func(text string) { output = append(output, text) }})
		if err != nil || len(output) != want || response.Text() != strings.Join(output, "") || response.Usage.Output != int64(want) {
			t.Errorf("%s: %d pieces, want %d; %+v, %v", name, len(output), want, response, err)
		}
		for _, piece := range output {
			if len(piece) != len("1795167905000000000 ") {
				t.Errorf("%s: got the piece %q, want a time in nanoseconds", name, piece)
			}
		}
	}
	p.Close()
	if resp, err := http.Post(strings.TrimSpace(url), "application/json", strings.NewReader("no JSON")); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	cancel()
	<-ended
}
