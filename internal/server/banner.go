package server

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
)

// banner tells a person at a terminal where things are and what to try.
func (s *Server) banner(w io.Writer, took time.Duration) {
	url := reachable(s.cfg.TLS(), s.Addr().String())
	var b strings.Builder
	fmt.Fprintf(&b, "Godwit %s is ready on %s (%s).\n", config.Version, url, took.Round(time.Millisecond))
	fmt.Fprintf(&b, "Data:    %s\n", dataPlace(s.cfg))
	if s.limits.warning != "" {
		fmt.Fprintf(&b, "Note:    %s\n", s.limits.warning)
	}
	if s.cfg.Clock == config.VirtualClock {
		fmt.Fprintf(&b, "Clock:   stands still; curl -d '{\"advance\":\"1h\"}' %s/_godwit/clock moves it\n", url)
	}
	if s.cfg.Enforce {
		s.enforcing(&b, url)
	} else {
		s.tryThis(&b, url)
	}
	if s.notices != nil {
		for _, notice := range s.notices() {
			fmt.Fprintln(&b, notice)
		}
	}
	_, _ = io.WriteString(w, b.String()) // a closed terminal is no reason to stop
}

// enforcing tells with which key to ask.
func (s *Server) enforcing(b *strings.Builder, url string) {
	fmt.Fprintf(b, "Callers: every request is to be signed, and may do what policies allow; the root user's access key is %s\n", s.cfg.Root.AccessKeyID)
	if s.cfg.Drawn {
		fmt.Fprintf(b, "AWS CLI: export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n",
			url, s.cfg.Region, s.cfg.Root.AccessKeyID, s.cfg.Root.Secret)
	}
}

// tryThis has commands that work without a key.
func (s *Server) tryThis(b *strings.Builder, url string) {
	fmt.Fprintf(b, "AWS CLI: export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n",
		url, s.cfg.Region)
	queue := fmt.Sprintf("%s/%s/hello", url, s.cfg.Account)
	// Version 1 of the CLI does not heed AWS_ENDPOINT_URL for SQS; the option always counts.
	fmt.Fprintf(b, "Try:     aws --endpoint-url %s sqs create-queue --queue-name hello\n", url)
	fmt.Fprintf(b, "         aws --endpoint-url %s sqs send-message --queue-url %s --message-body hi\n", url, queue)
	fmt.Fprintf(b, "         aws --endpoint-url %s sqs receive-message --queue-url %s\n", url, queue)
}

func dataPlace(cfg config.Config) string {
	if cfg.Store == config.MemoryStore {
		return "in memory, gone when the server ends"
	}
	place := cfg.Data
	if abs, err := filepath.Abs(place); err == nil {
		place = abs
	}
	if cfg.RootKey == "" {
		place += " (sealed with " + bootstrap.DevRootKey + " in it, which protects nothing)"
	}
	return place
}

// reachable is the URL of a listening address, as a client on this machine
// would write it: "all interfaces" is no place to connect to.
func reachable(secure bool, address string) string {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return scheme + address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}
