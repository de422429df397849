//go:build !linux

package sim

func goFirst() {}

func collectLittle() {}
