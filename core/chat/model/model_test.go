package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

func TestToolNamesFitEveryProviderAndStayDistinct(t *testing.T) {
	fits := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := map[string]string{}
	for _, name := range []string{"files__read", "files__read.all", "files__read/all", "files__read_all", "é", "", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 66)} {
		safe := model.SafeName(name)
		if !fits.MatchString(safe) || seen[safe] != "" || safe != model.SafeName(name) {
			t.Errorf("%q becomes %q, as %q does", name, safe, seen[safe])
		}
		seen[safe] = name + " "
		if fits.MatchString(name) && safe != name {
			t.Errorf("%q fits and becomes %q", name, safe)
		}
	}
}

func TestSchemasAreObjectsWithProperties(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                     `{"properties":{},"type":"object"}`,
		`null`:                                 `{"properties":{},"type":"object"}`,
		`true`:                                 `{"properties":{},"type":"object"}`,
		`{"type":"object"}`:                    `{"properties":{},"type":"object"}`,
		`{"oneOf":[{}],"required":["a"]}`:      `{"properties":{"a":{}},"required":["a"],"type":"object"}`,
		`{"properties":{"a":{"anyOf":[{}]}}}`:  `{"properties":{"a":{"anyOf":[{}]}},"type":"object"}`,
		`{"required":"a","properties":[1]}`:    `{"properties":{},"type":"object"}`,
		`{"type":"array","$defs":{"x":true}}`:  `{"$defs":{"x":{}},"properties":{},"type":"object"}`,
		`{"required":[1],"description":"why"}`: `{"description":"why","properties":{},"type":"object"}`,
	} {
		if got := model.SafeSchema(json.RawMessage(raw)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", raw, got, want)
		}
	}
}

func TestAConversationBeginsWithAUsersMessage(t *testing.T) {
	got := model.ForModel([]model.Message{model.TextMessage(model.Assistant, "Hello."), model.TextMessage(model.User, "Hi.")}, "m")
	if len(got) != 3 || got[0].Role != model.User || got[1].Blocks[0].Text != "Hello." {
		t.Errorf("%+v", got)
	}
}

func TestEachStatusMapsToAKindOfFailure(t *testing.T) {
	for _, c := range []struct {
		status        int
		kind, message string
		want          model.Failure
	}{
		{401, "", "", model.Auth}, {403, "permission_error", "", model.Auth}, {429, "rate_limit_error", "", model.RateLimited},
		{429, "insufficient_quota", "", model.Refused}, {400, "content_filter", "", model.Filtered}, {403, "", "Your chosen model requires moderation and your input was flagged", model.Filtered}, {400, "invalid_request_error", "Content Exists Risk", model.Filtered}, {400, "tool_use_failed", "", model.ServerError}, {529, "overloaded_error", "", model.Overloaded}, {503, "", "", model.Overloaded},
		{200, "overloaded_error", "", model.Overloaded}, {400, "context_length_exceeded", "", model.TooLong},
		{400, "invalid_request_error", "prompt is too long: 3 tokens", model.TooLong}, {413, "", "", model.TooLong}, {400, "", "bad", model.Refused}, {404, "", "", model.Refused},
	} {
		if e := model.FromStatus(c.status, nil, c.kind, c.message, nil); e.Failure != c.want {
			t.Errorf("%d %s %s is %d, want %d", c.status, c.kind, c.message, e.Failure, c.want)
		}
	}
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "1.5": 1500 * time.Millisecond, "soon": 0, "-3": 0} {
		if e := model.FromStatus(429, http.Header{"Retry-After": {header}}, "", "", nil); e.RetryAfter != want {
			t.Errorf("Retry-After %s is %v", header, e.RetryAfter)
		}
	}
}

// failing is a provider that returns its failures one by one, and then succeeds.
type failing struct {
	failures []error
	says     string // sent before each failure
	asked    int
}

func (f *failing) Window(context.Context, string) int { return 0 }

func (f *failing) Call(_ context.Context, _ string, _ model.Request, pieces model.Pieces) (model.Answer, error) {
	f.asked++
	if f.asked > len(f.failures) {
		return model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "ok"}}}, nil
	}
	if f.says != "" {
		pieces.Text(f.says)
	}
	return model.Answer{}, f.failures[f.asked-1]
}

func TestAProviderIsRetriedWhenThatMayHelp(t *testing.T) {
	over := &model.Error{Failure: model.Overloaded}
	for name, c := range map[string]struct {
		p           failing
		ok          bool
		asked       int
		least, most time.Duration
	}{
		"a filter":                           {failing{failures: []error{&model.Error{Failure: model.Filtered}}}, true, 1, 0, 0},
		"overloaded twice":                   {failing{failures: []error{over, over}}, true, 3, time.Second, 5 * time.Second},
		"always overloaded":                  {failing{failures: []error{over, over, over, over, over}}, false, 4, 3 * time.Second, 15 * time.Second},
		"a requested pause":                  {failing{failures: []error{&model.Error{Failure: model.RateLimited, RetryAfter: 15 * time.Second}}}, true, 2, 15 * time.Second, 16 * time.Second},
		"a requested pause that is too long": {failing{failures: []error{&model.Error{Failure: model.RateLimited, RetryAfter: time.Hour}}}, false, 1, 0, 0},
		"a refusal":                          {failing{failures: []error{&model.Error{Failure: model.Refused}}}, false, 1, 0, 0},
		"an invalid key":                     {failing{failures: []error{&model.Error{Failure: model.Auth}}}, false, 1, 0, 0},
		"a break after some text":            {failing{failures: []error{&model.Error{Failure: model.Broken}}, says: "Hel"}, false, 1, 0, 0},
		"a break before any text":            {failing{failures: []error{&model.Error{Failure: model.Broken}}}, true, 2, 500 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := model.Call(t.Context(), &c.p, "m", model.Request{}, model.Pieces{}, func(*model.Error, time.Duration) {})
				took := time.Since(start)
				if (err == nil) != c.ok || c.p.asked != c.asked || took < c.least || took > c.most {
					t.Errorf("%v after %d calls and %v", err, c.p.asked, took)
				}
			})
		})
	}
}

func TestAUserWhoDisconnectsEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		p := failing{failures: []error{&model.Error{Failure: model.Overloaded, RetryAfter: 10 * time.Second}}}
		start := time.Now()
		_, err := model.Call(ctx, &p, "m", model.Request{}, model.Pieces{}, func(*model.Error, time.Duration) {})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestACharacterThatIsSplitBetweenTwoPiecesIsRejoined(t *testing.T) {
	for pieces, want := range map[[2]string]string{
		{`"a \ud83d"`, `"\ude00 b"`}:   "a \U0001f600 b",
		{`"\\\ud83d"`, `"\uDE00"`}:     "\\\U0001f600",
		{`"C:\\ud83d"`, `"x"`}:         `C:\ud83dx`,
		{`"a \ud83d"`, `"b"`}:          "a \ufffdb",
		{`"\ud83d\ude00"`, `"\u00e9"`}: "\U0001f600é",
		{`null`, `"x"`}:                "x",
	} {
		var d model.Decoder
		if got := d.Add(json.RawMessage(pieces[0])) + d.Add(json.RawMessage(pieces[1])); got != want {
			t.Errorf("%s gives %q, want %q", pieces, got, want)
		}
	}
	for pieces, want := range map[[2]string]string{
		{`"{\"x\":\"\ud83d"`, `"\ude00\"}"`}:   "\U0001f600",
		{`"{\"x\":\"\\ud83d"`, `"\\ude00\"}"`}: "\U0001f600",
		{`"{\"x\":\"é"`, `"\"}"`}:              "é",
	} {
		var got struct{ X string }
		input := model.InputOf(json.RawMessage(pieces[0])) + model.InputOf(json.RawMessage(pieces[1]))
		if err := json.Unmarshal([]byte(input), &got); err != nil || got.X != want {
			t.Errorf("%s gives %q, %v", pieces, input, err)
		}
	}
}
