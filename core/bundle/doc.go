// Package bundle defines what a bundle is: its manifest, its archive, and what to launch.
//
// It reads an MCPB manifest (0.1 to 0.4, and the older dxt_version), unpacks an .mcpb file without trusting it,
// packs a bundle for another server, and checks the values an operator supplies (user_config and environment).
// It turns all of that into one argument vector and one environment. It does not start anything, store anything
// or contact registries: apps and process do.
//
// It is a separate package because every byte it reads comes from an untrusted source. Nothing here goes
// through a shell, reads the server's own environment, or is written outside the one directory it was given.
//
// The values of an installation arrive in one map, the env object of the install request:
//
//   - a name that is exactly a user_config key is a value for that field, and nothing else;
//   - any other name is an environment variable of the process (CheckEnv says which names are
//     rejected). It also fills the user_config field whose UPPER_SNAKE form it is, or whose value
//     the manifest passes to the environment variable of that name ("API_KEY": "${user_config.key}").
package bundle
