//go:build !linux

package server

func nameProcess(string) {}

func protectMemory() {}
