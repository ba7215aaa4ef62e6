//go:build !linux

package server

func protectMemory() {}
