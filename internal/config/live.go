package config

import "sync/atomic"

// Live are the settings that a server takes anew while it runs.
type Live struct{ maxRequests atomic.Int64 }

// NewLive begins with what is set.
func NewLive(c *Config) *Live {
	l := &Live{}
	l.Take(c)
	return l
}

// Take has them be as they are in other settings.
func (l *Live) Take(c *Config) { l.maxRequests.Store(int64(c.MaxRequests)) }

// RequestRate is how many requests a second an account may make now; 0: any number.
func (c *Config) RequestRate() int {
	if c.Live == nil {
		return c.MaxRequests
	}
	return int(c.Live.maxRequests.Load())
}
