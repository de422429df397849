package main

import (
	"os"
	"testing"
	"time"
)

func TestStatTimes(t *testing.T) {
	stat := []byte("77 (od) (d name) S 1 77 77 0 -1 4194560 100 200 0 0 150 50 30 20 20 0 9 0 100 1 2\n")
	if own, children := statTimes(stat); own != 2*time.Second || children != 500*time.Millisecond {
		t.Errorf("%v and %v", own, children)
	}
	if own, children := statTimes([]byte("77 (cut")); own != 0 || children != 0 {
		t.Errorf("%v and %v of garbage", own, children)
	}
}

func TestMachineTime(t *testing.T) {
	//                      user nice system idle iowait irq softirq steal guest guest_nice
	stat := []byte("cpu  100 10 50 9999 8888 3 2 5 70 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if got := machineTime(stat); got != 1700*time.Millisecond {
		t.Errorf("%v", got)
	}
}

// This process is one whose times are known in another way.
func TestReadUsage(t *testing.T) {
	begin := readUsage(os.Getpid())
	end := begin
	for end.client-begin.client < 30*time.Millisecond { // others may have the processors
		end = readUsage(os.Getpid())
	}
	server, client := end.server-begin.server, end.client-begin.client
	if server < 10*time.Millisecond || (server-client).Abs() > 20*time.Millisecond {
		t.Errorf("%v of CPU by its clock, %v by getrusage", server, client)
	}
	if now, peak := memory(os.Getpid()); now < 1 || peak < now {
		t.Errorf("%v MB resident, peak %v", now, peak)
	}
	if u := readUsage(0); u.server != 0 {
		t.Errorf("a server that is not known used %v", u.server)
	}
}
