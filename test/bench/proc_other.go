//go:build !linux

package main

import (
	"os/exec"
	"runtime"
	"time"
)

// usage is what has been spent; without /proc only the time of day is known.
type usage struct {
	at                      time.Time
	server, client, machine time.Duration
}

func readUsage(int) usage { return usage{at: time.Now()} }

func family(int) []int { return nil }

func memory(int) (now, peak float64) { return 0, 0 }

func writtenBy(int) uint64 { return 0 }

func flushesBelow(string) uint64 { return 0 }

func resetPeak(int) {}

func forget(string) error { return nil }

func detach(*exec.Cmd) {}

func machineFacts() string { return runtime.GOOS + ", CPU and memory figures need Linux" }
