// Package examples contains the files that `ropewalk plugin init` takes from the example plugins: the parts that all plugins
// in a language share.
package examples

import "embed"

// Files returns these parts, each below the folder of its example.
func Files() embed.FS { return files }

//go:embed auth-python/auth-python auth-python/src/main.py auth-python/src/plugin
//go:embed sessionstore-java/sessionstore-java sessionstore-java/pom.xml sessionstore-java/src/main/java
var files embed.FS
