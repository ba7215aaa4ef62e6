package model

import (
	"fmt"
	"mime"
	"strings"
)

// IsImage reports whether a File is a raster image. A vector image (SVG) is text.
func (b Block) IsImage() bool { return strings.HasPrefix(b.MIMEType, "image/") && !b.IsText() }

// IsText reports whether a File can be passed to a model as text.
func (b Block) IsText() bool {
	media, _, err := mime.ParseMediaType(b.MIMEType)
	if err != nil {
		return false
	}
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/sql":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// FileText returns the content of a text File, wrapped in an element with its name.
func (b Block) FileText() string {
	return fmt.Sprintf("<attachment name=%q>\n%s\n</attachment>", b.Name, strings.ToValidUTF8(string(b.Data), "\ufffd"))
}
