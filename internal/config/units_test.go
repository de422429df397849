package config_test

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"23d": 23 * day, "0d": 0, "1d12h": day + 12*time.Hour, "1.5d": 36 * time.Hour,
		"1d1h1m1s": 25*time.Hour + time.Minute + time.Second,
		"90m":      90 * time.Minute, "1.5s": 1500 * time.Millisecond, "0": 0, "106751d": 106751 * day,
	} {
		if got, err := config.ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "d", "1", "-1d", "1d-1h", "1d+1h", "-1h", "1d2d", "1h1d", "1dd", "e5d", "1e5d", "nand", "infd", " 1d", "1.2.3d",
		"106752d", "106751d24h", "99999999999999999999d",
	} {
		if got, err := config.ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) = %s, want an error", s, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"23d", "1d12h", "1.5s", "-1h", "106751d23h", "0.1d1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := config.ParseDuration(s)
		if err == nil && d < 0 {
			t.Fatalf("ParseDuration(%q) = %s", s, d)
		}
		if err != nil && d != 0 {
			t.Fatalf("ParseDuration(%q) = %s with error %v", s, d, err)
		}
	})
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "-1": -1, "10GiB": 10 << 30, "512MiB": 512 << 20, "10GB": 10e9, "10 GB": 10e9, "1.5KiB": 1536,
		"1kB": 1000, "1KB": 1000, "2MB": 2e6, "3TB": 3e12, "1TiB": 1 << 40, "7B": 7,
	} {
		if got, err := config.ParseBytes(s); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GiB", "10G", "10gib", "-1GiB", "1e3MB", "1.2.3MB", "10 apples", "8589934592GiB", "99999999999999999999", "0x10", "infGB"} {
		if got, err := config.ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", s, got)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"10GiB", "512MiB", "10GB", "-1", "1.5kB", "8EiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := config.ParseBytes(s)
		if err != nil && n != 0 {
			t.Fatalf("ParseBytes(%q) = %d with error %v", s, n, err)
		}
		if n < 0 && s[0] != '-' {
			t.Fatalf("ParseBytes(%q) = %d", s, n)
		}
	})
}
