//go:build !amd64

package multimd5

import "crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection

const sideBySide = false

func sums([][md5.Size]byte, [][]byte) {}
