package redis

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// libraryLog takes what go-redis would print to stderr. It is for debugging only: whatever goes
// wrong is also an error of the call that it went wrong for.
type libraryLog struct{ log hclog.Logger }

func (l libraryLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("go-redis says", "message", fmt.Sprintf(format, args...))
}
