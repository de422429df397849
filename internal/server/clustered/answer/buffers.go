package answer

import "sync"

// Buffers are what other nodes' answers are copied by, as an httputil.BufferPool.
type Buffers struct{}

const bufferSize = 32 << 10

var spare = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Get implements httputil.BufferPool.
func (Buffers) Get() []byte { return spare.Get().(*[bufferSize]byte)[:] }

// Put implements httputil.BufferPool, for what Get has given.
func (Buffers) Put(b []byte) { spare.Put((*[bufferSize]byte)(b)) }
