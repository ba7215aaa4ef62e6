package link

import (
	"bytes"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// What a request of StatelessVersion says of itself in params._meta.
const (
	reserved         = "io.modelcontextprotocol/"
	metaVersion      = reserved + "protocolVersion"
	metaClient       = reserved + "clientInfo"
	metaCapabilities = reserved + "clientCapabilities"
	metaLogLevel     = reserved + "logLevel"
)

// outgoing makes r ready to be sent: it says of its revision what the connection's revision wants
// to be said, and no more.
func (l *Link) outgoing(r Request) (request, error) {
	out, meta, err := readRequest(r.Method, r.Params)
	if err != nil {
		return out, err
	}
	switch {
	case l.info.Stateless:
		if said, err := member(meta, metaVersion); err != nil || said == nil {
			out, err = newRequest(r.Method, l.stamped(r, meta))
			if err != nil {
				return out, err
			}
		}
		out.header = mirrored(r.Mirrors, r.Params)
	case bytes.Contains(meta, []byte(reserved)) || bytes.IndexByte(meta, '\\') >= 0: // a name can be written with escapes
		return newRequest(r.Method, withToken(r.Params, spanOf(r.Params, meta), plainMeta(meta)))
	}
	return out, nil
}

// stamped is r's params with what a stateless request must say of its client. meta is their _meta,
// nil when they have none.
func (l *Link) stamped(r Request, meta []byte) []byte {
	capabilities := r.Capabilities
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	client, _ := json.Marshal(map[string]string{"name": "ropewalk", "version": l.o.Version}) // strings always marshal
	said := []byte(`{"` + metaVersion + `":"` + StatelessVersion + `","` + metaClient + `":`)
	said = append(append(append(said, client...), `,"`+metaCapabilities+`":`...), capabilities...)
	kept := members(meta, func(key []byte) bool {
		return string(key) != metaVersion && string(key) != metaClient && string(key) != metaCapabilities
	})
	if len(kept) > 0 {
		said = append(append(said, ','), kept...)
	}
	said = append(said, '}')
	if meta != nil {
		return withToken(r.Params, spanOf(r.Params, meta), said)
	}
	others := members(r.Params, func(key []byte) bool { return string(key) != "_meta" })
	out := append([]byte(`{"_meta":`), said...)
	if len(others) > 0 {
		out = append(append(out, ','), others...)
	}
	return append(out, '}')
}

// plainMeta is a _meta without what older revisions do not know; to a bundle that speaks both it
// would say that the request belongs to another connection.
func plainMeta(meta []byte) []byte {
	kept := members(meta, func(key []byte) bool {
		switch string(key) {
		case metaVersion, metaClient, metaCapabilities, metaLogLevel:
			return false
		}
		return true
	})
	return append(append([]byte{'{'}, kept...), '}')
}

// members are the members of an object that was checked before and whose names keep says yes to,
// as they are written, without the braces around them.
func members(object []byte, keep func(key []byte) bool) []byte {
	var out []byte
	s := rawjson.Scanner{Data: object}
	s.Space()
	_ = s.Object(func(key, value []byte) error {
		if !keep(rawjson.Name(key)) {
			return nil
		}
		if out != nil {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), `":`...)
		out = append(out, value...)
		return nil
	})
	return out
}
