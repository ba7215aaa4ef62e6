package tools

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CheckForm checks the fields that a person filled in against the schema that an app sent (elicitation,
// form mode): core.CodeInvalidInput with every violation in its details. Formats are checked, because MCP
// defines those of a form. With an invalid schema, every object is accepted.
func (n *Namespace) CheckForm(schema, content json.RawMessage) error {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return n.validator.checkObject("the fields of content", "what the app asks for", content, compile(schema, c))
}
