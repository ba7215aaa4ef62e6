package pluginhost

import (
	"fmt"

	"google.golang.org/grpc"
)

// facadeOf picks the contract's client for the wire version that was negotiated.
func facadeOf[T any](t target, clients map[int]func(grpc.ClientConnInterface) T) func(*grpc.ClientConn, int) (T, error) {
	return func(conn *grpc.ClientConn, wire int) (T, error) {
		client, ok := clients[wire]
		if !ok {
			var none T
			return none, t.failed(fmt.Sprintf("it speaks wire version %d, which this server does not", wire), "rebuild it with this server's SDK")
		}
		return client(conn), nil
	}
}
