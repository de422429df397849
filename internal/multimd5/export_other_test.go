//go:build !amd64

package multimd5

func oneByOne() (restore func()) { return func() {} }
