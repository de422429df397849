package sim

import (
	"os"
	"strconv"
	"syscall"
)

// collectLittle starts this process anew with a garbage collector that only keeps a limit, of
// which a history takes some 65 MB, unless the environment says how to collect. A collection
// stops a goroutine wherever it is, as does a wait for the processor (see goFirst): it had one
// in ten pairs of histories differ. To set it at run time is too late.
func collectLittle() {
	if os.Getenv("GOGC") != "" {
		return
	}
	if self, err := os.Executable(); err == nil {
		_ = syscall.Exec(self, os.Args, append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB"))
	}
}

// goFirst has the machine run this process before others, where it may. A goroutine that
// runs on while its process waits for a processor looks to Go's scheduler as if it took
// too long, and others go before it: the same moment then has another order.
func goFirst() {
	const first = -20
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, first) // only root may
		}
	}
}

// interruptions is how often the machine has taken the processor from this process so far.
func interruptions() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return int64(usage.Nivcsw) //nolint:unconvert // it has 32 bits on some machines
}
