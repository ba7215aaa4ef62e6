// Package console serves the console, the web interface of the server, from assets that are embedded in the
// executable. It serves the page at / and at the path of each screen, the assets under /assets, and the frame in
// which views of apps run.
//
// It owns the headers of these responses (content security policy, caching, encodings) and the facts
// that a page needs before anybody has logged in. It does not authenticate and it contains no data: a
// page uses the same API as every other client, /v1, with the same rights.
//
// The source of the assets is the directory web; make web builds them into dist. The built assets are
// committed, so that go build alone produces a complete server.
package console
