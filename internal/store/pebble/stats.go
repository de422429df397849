package pebble

import "godwit.dev/godwit/internal/store"

// Stats are the statistics of the store; zero when it is closed.
func (s *Store) Stats() store.Stats {
	if s.enter() != nil {
		return store.Stats{}
	}
	defer s.using.RUnlock()
	m := s.db.Metrics()
	if s.flushes.only {
		m.WAL.BytesWritten = 0 // Pebble counts what was flushed
	}
	damagedFiles, unreadable := s.damage.counts()
	return store.Stats{
		DiskBytes: m.DiskSpaceUsage(),
		WALBytes:  m.WAL.Size, WALWritten: m.WAL.BytesWritten, MemTableBytes: m.MemTable.Size,
		Flushes: m.Flush.Count, Compactions: m.Compact.Count, Compacting: m.Compact.NumInProgress, CompactionDebt: m.Compact.EstimatedDebt,
		L0Tables: m.Levels[0].TablesCount, L0Sublevels: m.Levels[0].Sublevels,
		CacheBytes: m.BlockCache.Size, CacheHits: m.BlockCache.Hits, CacheMisses: m.BlockCache.Misses,
		DamagedFiles: damagedFiles, UnreadableRecords: unreadable,
	}
}
