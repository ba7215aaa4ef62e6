package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// faultyMain is a bundle without an SDK that breaks the protocol as real servers do. It answers the tool named
// string-id with its ID as a string, and the tool named other-id with an ID that nobody used. It announces a change
// after each tools/list and fails after the first page of the list. If it declares no capabilities, it has no list at
// all.
func faultyMain(declares bool) int {
	lists := 0
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name, Cursor string }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		answer := func(format string, args ...any) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,`+format+"}\n", append([]any{m.ID}, args...)...)
		}
		switch {
		case m.Method == "initialize":
			capabilities := map[bool]string{true: `{"tools":{"listChanged":true}}`, false: `{}`}[declares]
			answer(`"result":{"protocolVersion":"2025-11-25","capabilities":%s,"serverInfo":{"name":"faulty","version":"1.0.0"}}`, capabilities)
		case m.Method == "tools/list" && declares && m.Params.Cursor == "":
			answer(`"result":{"tools":[{"name":"string-id","inputSchema":{"type":"object"}},{"name":"other-id","inputSchema":{"type":"object"}},` +
				`{"name":"lists","inputSchema":{"type":"object"}}],"nextCursor":"2"}`)
			lists++
		case m.Method == "tools/list" && declares:
			answer(`"error":{"code":-32603,"message":"the database is locked"}`)
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		case m.Params.Name == "string-id":
			fmt.Printf(`{"jsonrpc":"2.0","id":"%s","result":{"content":[]}}`+"\n", m.ID)
		case m.Params.Name == "other-id":
			fmt.Println(`{"jsonrpc":"2.0","id":987654321,"result":{"content":[]}}`)
		case m.Params.Name == "lists":
			answer(`"result":{"content":[{"type":"text","text":"%d"}]}`, lists)
		default:
			answer(`"error":{"code":-32601,"message":"unknown method"}`)
		}
	}
}
