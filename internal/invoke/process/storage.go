package process

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
)

// storagePause is the interval between checks of functions' /tmp.
const storagePause = 100 * time.Millisecond

// storage bounds the content of all environments' /tmp, which is in memory. While the sum of
// their bounds is lower, nothing is checked.
type storage struct {
	limitKB int64
	logger  *slog.Logger

	mu       sync.Mutex
	all      map[*environment]struct{}
	mayKB    int64 // what all of them may have
	ended    int64 // environments, since the start
	watching bool
}

// newStorage bounds /tmp to a number of bytes; 0: a quarter of the memory that there is.
func newStorage(bytes int64, logger *slog.Logger) *storage {
	if bytes <= 0 {
		bytes = memoryBytes("/") / 4
	}
	return &storage{limitKB: bytes >> 10, logger: logger, all: map[*environment]struct{}{}}
}

// memoryBytes is how much memory this machine or container has.
func memoryBytes(root string) int64 {
	least := int64(1) << 62
	for _, name := range []string{
		"proc/meminfo", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		number, unit := strings.TrimSpace(string(text)), int64(1)
		if strings.HasPrefix(number, "MemTotal:") {
			line, _, _ := strings.Cut(number, "\n")
			number, unit = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(line, "MemTotal:"), "kB")), 1<<10
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n < least/unit {
			least = n * unit
		}
	}
	return least
}

func (s *storage) add(e *environment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[e] = struct{}{}
	s.mayKB += int64(e.memory.MB) << 10
	if !s.watching {
		s.watch()
	}
}

func (s *storage) remove(e *environment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[e]; ok {
		delete(s.all, e)
		s.mayKB -= int64(e.memory.MB) << 10
	}
}

// watch starts the checks, if necessary. The caller holds the lock.
func (s *storage) watch() {
	if s.watching = s.mayKB > s.limitKB; s.watching {
		clock.System.AfterFunc(storagePause, s.check)
	}
}

// check ends the environment with the most content if the sum is too large.
func (s *storage) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum, most int64
	var largest *environment
	for e := range s.all {
		used := e.memory.UsedKB()
		if sum += used; used > most {
			most, largest = used, e
		}
	}
	if sum > s.limitKB && largest != nil {
		s.logger.Warn("functions have more in /tmp than --function-storage lets all of them have: the one with most is ended, and its /tmp emptied",
			"function", largest.target.Function.String(), "usedMebibytes", most>>10, "allMebibytes", sum>>10, "limitMebibytes", s.limitKB>>10)
		largest.empty()
		s.ended++
	}
	s.watch()
}

// stats are what metrics show.
func (s *storage) stats() limit.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := limit.Stats{Name: "function_storage_bytes", Limit: s.limitKB << 10, Cut: s.ended}
	for e := range s.all {
		t.Used += e.memory.UsedKB() << 10
	}
	return t
}
