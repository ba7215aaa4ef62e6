package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// callStateless is a request to a bundle that uses MCP 2026-07-28.
type callStateless struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		Arguments TextArguments
		State     string `json:"requestState"`
		Responses struct {
			Name struct{ Content struct{ Name string } }
		} `json:"inputResponses"`
	}
}

// statelessMain is a bundle without an SDK that supports only MCP 2026-07-28. Its tool named ask reports progress,
// waits for GateFile, reports progress again, and then asks for a name in its result. When it is called with the
// answer, it reports progress a third time and returns the name. The progress and the question contain the text from
// the call.
func statelessMain() int {
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	open := gateOpened()
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var c callStateless
		if json.Unmarshal(line, &c) != nil || c.ID == nil {
			continue
		}
		if string(c.Params.Meta["io.modelcontextprotocol/protocolVersion"]) != `"2026-07-28"` {
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"]}}}`, c.ID)
			continue
		}
		go func() {
			progress := func(n int) {
				say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`,
					c.Params.Meta["progressToken"], n, c.Params.Arguments.Text)
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, c.result(progress, open))
		}()
	}
}

func (c callStateless) result(progress func(int), open <-chan struct{}) string {
	switch {
	case c.Method == "server/discover":
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"stateless","version":"1.0.0"}}}`
	case c.Method == "tools/list":
		return `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"ask","inputSchema":` +
			`{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"}},"required":["text"]}}]}`
	case c.Method != "tools/call":
		return `{"resultType":"complete"}`
	case c.Params.State == "":
		progress(1)
		<-open
		progress(2)
		return fmt.Sprintf(`{"resultType":"input_required","requestState":%q,"inputRequests":{"name":{"method":"elicitation/create",`+
			`"params":{"message":%q,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`,
			"state of "+c.Params.Arguments.Text, c.Params.Arguments.Text)
	case c.Params.State != "state of "+c.Params.Arguments.Text:
		return fmt.Sprintf(`{"resultType":"complete","isError":true,"content":[{"type":"text","text":%q}]}`, "this is the "+c.Params.State)
	}
	progress(3)
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, c.Params.Responses.Name.Content.Name)
}
