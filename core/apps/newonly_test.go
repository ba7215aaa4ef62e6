package apps

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// newOnly is a hand-written bundle that does not support the handshake. Its only tool asks for a word before it
// answers.
func newOnly() int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Meta           map[string]json.RawMessage `json:"_meta"`
				RequestState   string                     `json:"requestState"`
				InputResponses struct {
					Word struct {
						Content struct {
							Word string `json:"word"`
						} `json:"content"`
					} `json:"word"`
				} `json:"inputResponses"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if string(m.Params.Meta["io.modelcontextprotocol/protocolVersion"]) != `"2026-07-28"` {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"]}}}`+"\n", m.ID)
			continue
		}
		result := `{"resultType":"complete"}`
		switch m.Method {
		case "server/discover":
			result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Call word.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"3.1"}}}`
		case "tools/list":
			result = `{"resultType":"complete","tools":[{"name":"word","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
		case "tools/call":
			result = fmt.Sprintf(`{"resultType":"input_required","requestState":"s1","inputRequests":{"word":{"method":"elicitation/create","params":{"message":"capabilities are %s","requestedSchema":{}}}}}`,
				escaped(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"]))
			if m.Params.RequestState == "s1" {
				result = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, "the word is "+m.Params.InputResponses.Word.Content.Word)
			}
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

// answerAll is a bundle that gives the same answer to everything.
func answerAll(answer string) int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct{ ID json.RawMessage }
		if json.Unmarshal(line, &m) == nil && m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
		}
	}
}

func escaped(raw json.RawMessage) string {
	quoted := fmt.Sprintf("%q", string(raw))
	return quoted[1 : len(quoted)-1]
}
