package sim

import (
	"os"
	"strconv"
	"syscall"
)

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
