package config_test

import (
	"testing"

	"godwit.dev/godwit/internal/config"
)

// A reload reads anew the files that settings name, and without one nothing does.
func TestReloadOfFiles(t *testing.T) {
	var c config.Config
	c.Live.OnReload(func() { t.Error("it is called without a reload") })
	c.Live = config.NewLive(&c)
	read := 0
	c.Live.OnReload(func() { read++ })
	c.Live.OnReload(func() { read += 10 })
	c.Live.Reload()
	if read != 11 {
		t.Errorf("read: %d", read)
	}
}
