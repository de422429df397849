//go:build !linux

package process

// memoryGroups makes no groups here.
type memoryGroups struct{}

func findMemoryGroups() memoryGroups { return memoryGroups{} }

func (memoryGroups) make(int) (string, error) { return "", nil }

func treeKB(int) int64 { return 0 }

func peakKB(int) int64 { return 0 }
