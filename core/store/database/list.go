package database

import "encoding/json"

// JSONList is a list as one argument of a statement, to be read with the JSON functions of the database.
func JSONList[T uint32 | string](all []T) string {
	raw, _ := json.Marshal(all) // these always marshal
	return string(raw)
}
