package rpc

import "encoding/json"

// Encode is the notification as a message. Its params are not decoded.
func (n Notification) Encode() []byte {
	b := make([]byte, 0, len(n.Method)+len(n.Params)+48)
	return appendCall(append(b, `{"jsonrpc":"2.0",`...), n.Method, n.Params)
}

// Request is a request as a message. Its params are not decoded.
func Request(id json.RawMessage, method string, params json.RawMessage) []byte {
	b := make([]byte, 0, len(id)+len(method)+len(params)+48)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	return appendCall(append(b, ','), method, params)
}

func appendCall(b []byte, method string, params json.RawMessage) []byte {
	quoted, _ := json.Marshal(method) // a string always marshals
	b = append(append(b, `"method":`...), quoted...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// Result is a response around a result that is not decoded, and may come in parts.
func Result(id json.RawMessage, result ...[]byte) []byte {
	size := len(id) + 40
	for _, part := range result {
		size += len(part)
	}
	b := make([]byte, 0, size)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(b, `,"result":`...)
	for _, part := range result {
		b = append(b, part...)
	}
	return append(b, '}')
}
