package sandbox

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// What only this kind of processor has: nothing.
var (
	refusedHere []uint32
	rulesHere   []rule
)
