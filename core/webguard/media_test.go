package webguard

import "testing"

func TestTheContentTypeHeaderDecidesHowABodyIsRead(t *testing.T) {
	for text, want := range map[string]bool{
		"application/json": true, "Application/JSON; charset=UTF-8": true, "application/json;charset=latin1": false, `application/json; charset=""`: false,
		"": false, "text/plain": false, "application/json-patch+json": false, "application/json, text/plain": false, "application/json; charset": false,
	} {
		if got := JSON(&request("POST", "Content-Type: "+text).Request.Header); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, want := range map[string]bool{"identity": false, "Identity": false, "gzip": true, "identity, gzip": true} {
		if got := Encoded(&request("POST", "Content-Encoding: "+text).Request.Header); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAMediaTypeIsAcceptedByNameAndByRange(t *testing.T) {
	for text, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream": true, "Text/Event-Stream;q=0.5": true, "text/*": true, "*/*": true,
		"": false, "application/json": false, "text/event-stream2": false, "application/*": false, "*": false, "te*": false,
	} {
		if got := Accepts(&request("POST", "Accept: "+text).Request.Header, "text/event-stream"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !Accepts(&request("POST", "Accept: application/json", "Accept: text/event-stream").Request.Header, "text/event-stream") {
		t.Error("the second of two headers was ignored")
	}
}
