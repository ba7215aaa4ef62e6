package plugins

// MaxMessage is the largest gRPC message, in bytes, that the server and a plugin accept from each other.
const MaxMessage = 16 << 20
