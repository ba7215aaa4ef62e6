package webguard

import (
	"mime"
	"regexp"
)

// javaScript matches every media type that browsers execute as JavaScript (MIME Sniffing Standard, JavaScript MIME
// type). With "X-Content-Type-Options: nosniff", they load nothing else as a script, module or worker.
var javaScript = regexp.MustCompile(`^(application|text)/(x-)?(java|ecma)script$|^text/(javascript1\.[0-5]|jscript|livescript)$`)

// container matches the media types whose parts have headers of their own. For such parts, browsers have ignored the
// policy and the disposition of the response (CVE-2018-5164, CVE-2024-10461).
var container = regexp.MustCompile(`^(multipart|message)/`)

// ServedType returns the media type to use when serving content from an app or a user. It is the declared type, unless
// a page of this origin could then load the content as a script, or the content could replace the headers of its response:
// in these cases it is plain text.
func ServedType(declared string) string {
	media, _, err := mime.ParseMediaType(declared)
	if err != nil || javaScript.MatchString(media) || container.MatchString(media) {
		return "text/plain; charset=utf-8"
	}
	return declared
}
