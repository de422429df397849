//go:build !linux

package sim

func goFirst() {}

func collectLittle() {}

func interruptions() int64 { return 0 }
