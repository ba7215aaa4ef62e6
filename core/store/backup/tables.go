package backup

// Tables returns the tables that a backup holds, each after those it refers to. What is left out is valid
// for a moment only: notices, runs, open questions, logins under way.
func Tables() []string {
	return []string{
		"users", "workspaces", "members", "bundles", "bundle_parts", "installations", "pins", "cookies", "api_keys", "settings",
		"collections", "conversations", "messages", "attachments", "words", "word_sets", "usage_records",
	}
}
