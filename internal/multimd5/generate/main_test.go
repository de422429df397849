package main

import (
	"bytes"
	"os"
	"testing"
)

// TestGenerated: what is committed is what this program writes.
func TestGenerated(t *testing.T) {
	got, err := os.ReadFile("../blocks_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, generate()) {
		t.Error("blocks_amd64.s is another: go generate ./internal/multimd5")
	}
}
