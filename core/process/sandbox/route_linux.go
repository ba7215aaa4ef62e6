package sandbox

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopbackIndex is the index of the loopback interface in every network namespace, as in the kernel's flow.h.
const loopbackIndex = 1

// isOwnAddress reports whether a packet to an address stays on this machine, according to the kernel's routing
// tables. If the kernel does not answer, the address counts as this machine's, because the caller refuses
// those.
func isOwnAddress(ip netip.Addr) bool {
	routed, err := leavesMachine(ip)
	return err != nil || !routed
}

// leavesMachine asks the kernel for the route to an address (rtnetlink(7)). Only addresses of other machines
// have a unicast route through an interface other than loopback.
func leavesMachine(ip netip.Addr) (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, routeQuestion(ip), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return false, err
	}
	return readRoute(answer[:n])
}

func routeQuestion(ip netip.Addr) []byte {
	destination := ip.AsSlice()
	family := byte(unix.AF_INET)
	if ip.Is6() {
		family = unix.AF_INET6
	}
	length := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(destination)
	q := binary.NativeEndian.AppendUint32(nil, uint32(length))
	q = binary.NativeEndian.AppendUint16(q, unix.RTM_GETROUTE)
	q = binary.NativeEndian.AppendUint16(q, unix.NLM_F_REQUEST)
	q = append(q, make([]byte, 8)...) // sequence number and port
	q = append(q, family, byte(ip.BitLen()))
	q = append(q, make([]byte, unix.SizeofRtMsg-2)...)
	q = binary.NativeEndian.AppendUint16(q, uint16(unix.SizeofRtAttr+len(destination)))
	q = binary.NativeEndian.AppendUint16(q, unix.RTA_DST)
	return append(q, destination...)
}

var errNoRoute = errors.New("cannot read the kernel's answer about a route")

func readRoute(answer []byte) (leaves bool, err error) {
	if len(answer) < unix.SizeofNlMsghdr+unix.SizeofRtMsg {
		return false, errNoRoute
	}
	switch binary.NativeEndian.Uint16(answer[4:]) {
	case unix.RTM_NEWROUTE:
	case unix.NLMSG_ERROR:
		return false, unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
	default:
		return false, errNoRoute
	}
	route := (*unix.RtMsg)(unsafe.Pointer(&answer[unix.SizeofNlMsghdr]))
	if route.Type != unix.RTN_UNICAST {
		return false, nil
	}
	for rest := answer[unix.SizeofNlMsghdr+unix.SizeofRtMsg:]; len(rest) >= unix.SizeofRtAttr; {
		length := int(binary.NativeEndian.Uint16(rest))
		if length < unix.SizeofRtAttr || length > len(rest) {
			return false, errNoRoute
		}
		if binary.NativeEndian.Uint16(rest[2:]) == unix.RTA_OIF && length >= unix.SizeofRtAttr+4 {
			return binary.NativeEndian.Uint32(rest[unix.SizeofRtAttr:]) != loopbackIndex, nil
		}
		rest = rest[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(rest)):]
	}
	return false, nil // a multipath route would have no single interface, but the kernel resolves RTA_MULTIPATH
}
