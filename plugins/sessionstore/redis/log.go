package redis

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// libraryLog receives what go-redis would otherwise print to stderr. It is only for debugging, because every failure is
// also the error of a call.
type libraryLog struct{ log hclog.Logger }

func (l libraryLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("go-redis says", "message", fmt.Sprintf(format, args...))
}
