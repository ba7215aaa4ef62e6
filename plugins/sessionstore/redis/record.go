package redis

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// encode encodes a record in the form that touch.lua reads. The last access comes first, so that a touch can replace it
// without decoding the rest.
func encode(rec sessionstore.Record) (string, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(rec.LastAccessedAt.UnixMilli(), 10) + " " + string(body), nil
}

func decode(value string) (sessionstore.Record, error) {
	at, body, found := strings.Cut(value, " ")
	millis, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil {
		return sessionstore.Record{}, errors.New("the value in redis is not a session; give this store a keyPrefix of its own")
	}
	var rec sessionstore.Record
	if err := json.Unmarshal([]byte(body), &rec); err != nil {
		return sessionstore.Record{}, errors.New("the session in redis is not readable")
	}
	rec.LastAccessedAt = time.UnixMilli(millis).UTC()
	return rec, nil
}
