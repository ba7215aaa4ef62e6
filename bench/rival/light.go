package rival

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Light runs a hand-written bundle: it reads requests from in and writes responses to out, without decoding
// JSON. It represents bundles in fast languages, where the cost of the gateway itself is visible.
func Light(in io.Reader, out io.Writer) error {
	lines, w := bufio.NewReaderSize(in, 256<<10), bufio.NewWriterSize(out, 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if from, to, ok := idOf(line); ok {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", line[from:to], lightResult(line)) // Flush reports errors
		}
		if lines.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// lightResult returns the result for a request. It searches the request for known names.
func lightResult(line []byte) []byte {
	head := line[:min(len(line), 120)]
	switch {
	case bytes.Contains(head, []byte(`"initialize"`)):
		return []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"light","version":"1"}}`)
	case bytes.Contains(head, []byte(`"tools/list"`)):
		return []byte(`{"tools":[{"name":"` + EchoTool + `","description":"Says back what it is given.","inputSchema":` + echoSchema + `}]}`)
	case bytes.Contains(head, []byte(`"tools/call"`)):
		_, text, _ := bytes.Cut(line, []byte(`"text":`))
		end := bytes.IndexByte(text[min(1, len(text)):], '"')
		if end < 0 {
			return []byte(`{"content":[],"isError":true}`)
		}
		return append(append([]byte(`{"content":[{"type":"text","text":`), text[:end+2]...), `}]}`...)
	}
	return []byte(`{}`)
}
