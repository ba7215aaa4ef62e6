package pluginhost

import (
	"fmt"

	"google.golang.org/grpc"
)

// clientOf picks the contract's client for the protocol version that was negotiated.
func clientOf[T any](t target, clients map[int]func(grpc.ClientConnInterface) T) func(*grpc.ClientConn, int) (T, error) {
	return func(conn *grpc.ClientConn, version int) (T, error) {
		client, ok := clients[version]
		if !ok {
			var none T
			return none, t.failed(fmt.Sprintf("it speaks protocol version %d, which this server does not", version), "rebuild it with this server's SDK")
		}
		return client(conn), nil
	}
}
