package webguard

import (
	"mime"
	"regexp"
)

// javaScript are the media types that a browser executes, all of them (MIME Sniffing Standard, JavaScript MIME type): with
// "X-Content-Type-Options: nosniff" it takes no other for a script, a module or a worker.
var javaScript = regexp.MustCompile(`^(application|text)/(x-)?(java|ecma)script$|^text/(javascript1\.[0-5]|jscript|livescript)$`)

// ServedType returns the type to serve what an app or a person supplied with: the one that they declared, or plain text when
// a page of this origin could load it as a script.
func ServedType(declared string) string {
	media, _, err := mime.ParseMediaType(declared)
	if err != nil || javaScript.MatchString(media) {
		return "text/plain; charset=utf-8"
	}
	return declared
}
