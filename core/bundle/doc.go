// Package bundle is what a bundle is: its manifest, its archive, and what to launch.
//
// It owns reading an MCPB manifest (0.1 to 0.4, and the older dxt_version), unpacking an .mcpb
// file without trusting it, packing a bundle for another server, the values an operator supplies (user_config and environment), and
// turning all of that into one argument vector and one environment. It starts nothing, keeps
// nothing and asks no registry: apps and process do.
//
// It is apart because every byte it reads was written by a stranger. Nothing here goes through a
// shell, nothing reads the server's own environment, and nothing is written outside the one
// directory it was given.
//
// The values of an installation arrive in one map, the env object of the install request:
//
//   - a name that is exactly a user_config key is a value for that field, and nothing else;
//   - any other name is an environment variable of the process (CheckEnv says which names are
//     refused), and also fills the user_config field whose UPPER_SNAKE form it is, or whose value
//     the manifest hands to the environment variable of that name ("API_KEY": "${user_config.key}").
package bundle
