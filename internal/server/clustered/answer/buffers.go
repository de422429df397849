package answer

import "sync"

// Buffers are buffers for copying other nodes' answers, as an httputil.BufferPool.
type Buffers struct{}

const bufferSize = 32 << 10

var spare = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Get implements httputil.BufferPool.
func (Buffers) Get() []byte { return spare.Get().(*[bufferSize]byte)[:] }

// Put implements httputil.BufferPool, for buffers of Get.
func (Buffers) Put(b []byte) { spare.Put((*[bufferSize]byte)(b)) }
