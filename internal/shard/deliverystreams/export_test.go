package deliverystreams

import "godwit.dev/godwit/internal/arn"

// Buffered is how many bytes of undelivered records a stream has, and since when, in epoch
// milliseconds; 0: there are none.
func (m *Module) Buffered(a arn.ARN) (bytes, since int64) {
	m.shard.View(func() {
		if buf := m.streams[a]; buf != nil && buf.next > buf.first {
			bytes, since = buf.all.weight, buf.oldest
			if buf.batch != nil {
				since = buf.batch.Oldest
			}
		}
	})
	return bytes, since
}
